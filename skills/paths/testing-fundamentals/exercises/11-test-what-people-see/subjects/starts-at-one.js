function TeaCounter() {
  let count = 0;
  let touched = false;
  return {
    draw: () => [
      { role: 'status', text: `Cups: ${touched ? count : 1}` },
      {
        role: 'button',
        name: 'One more',
        text: 'One more',
        onClick: () => {
          touched = true;
          count += 1;
        },
      },
      {
        role: 'button',
        name: 'Start again',
        text: 'Start again',
        onClick: () => {
          touched = true;
          count = 0;
        },
      },
    ],
  };
}
