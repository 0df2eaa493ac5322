function TeaCounter() {
  let count = 0;
  return {
    draw: () => [
      { role: 'status', text: `Cups: ${count}` },
      {
        role: 'button',
        text: 'One more',
        onClick: () => {
          count += 1;
        },
      },
      {
        role: 'button',
        text: 'Start again',
        onClick: () => {
          count = 0;
        },
      },
    ],
  };
}
