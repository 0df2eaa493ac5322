function TeaCounter() {
  const page = {
    cups: [],
    draw() {
      const again = {
        role: 'button',
        name: 'Start again',
        text: 'Start again',
        onClick: () => page.cups.splice(0),
      };
      const more = {
        role: 'button',
        name: 'One more',
        text: 'One more',
        onClick: () => page.cups.push('tea'),
      };
      return [again, more, { role: 'heading', text: 'Tea' }, { role: 'status', text: 'Cups: ' + page.cups.length }];
    },
  };
  return page;
}
