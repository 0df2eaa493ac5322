test('rings in the right minute only', () => {
  jest.useFakeTimers();
  let now = 0;
  const rang = [];
  eggTimer(4, () => rang.push(now));

  for (now = 1; now <= 20; now += 1) {
    jest.advanceTimersByTime(60 * 1000);
  }

  expect(rang).toEqual([4]);
});
