test('rings', () => {
  jest.useFakeTimers();
  eggTimer(5, () => {});
  jest.advanceTimersByTime(5 * 60 * 1000);
});
