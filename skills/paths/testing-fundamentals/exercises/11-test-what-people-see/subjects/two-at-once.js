function TeaCounter() {
  let count = 0;
  return {
    draw: () => [
      { role: 'status', text: `Cups: ${count}` },
      {
        role: 'button',
        name: 'One more',
        text: 'One more',
        onClick: () => {
          count += count + 1;
        },
      },
      {
        role: 'button',
        name: 'Start again',
        text: 'Start again',
        onClick: () => {
          count = 0;
        },
      },
    ],
  };
}
