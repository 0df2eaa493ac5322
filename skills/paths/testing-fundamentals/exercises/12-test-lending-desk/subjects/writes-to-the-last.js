function createShelf(titles) {
  const books = new Set(titles);
  return {
    has: (title) => books.has(title),
    take: (title) => books.delete(title),
    put: (title) => {
      books.add(title);
    },
  };
}

function createDesk(shelf, send) {
  const queues = new Map();
  return {
    lend(title) {
      if (!shelf.has(title)) throw new Error(`${title} is not here`);
      shelf.take(title);
    },
    wait(title, reader) {
      if (!queues.has(title)) queues.set(title, []);
      queues.get(title).push(reader);
    },
    async giveBack(title) {
      shelf.put(title);
      const queue = queues.get(title) ?? [];
      const reader = queue.pop();
      if (reader !== undefined) await send(reader, `${title} is here`);
    },
  };
}
