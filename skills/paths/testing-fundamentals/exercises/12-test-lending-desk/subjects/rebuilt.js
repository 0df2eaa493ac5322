class Shelf {
  constructor(titles) {
    this.titles = [...titles];
  }
  has(title) {
    return this.titles.includes(title);
  }
}

function createShelf(titles) {
  return new Shelf(titles);
}

function createDesk(shelf, send) {
  let waiting = [];
  return {
    lend(title) {
      const at = shelf.titles.indexOf(title);
      if (at < 0) throw new Error(title + ' is not here');
      shelf.titles.splice(at, 1);
      return title;
    },
    wait(title, reader) {
      waiting = [...waiting, { title, reader }];
    },
    async giveBack(title) {
      shelf.titles.push(title);
      const next = waiting.find((entry) => entry.title === title);
      if (!next) return 'nobody waits';
      waiting = waiting.filter((entry) => entry !== next);
      return send(next.reader, title + ' is here');
    },
  };
}
