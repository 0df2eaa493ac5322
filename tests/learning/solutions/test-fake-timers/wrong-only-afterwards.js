test('rings', () => {
  jest.useFakeTimers();
  const ring = jest.fn();
  eggTimer(5, ring);
  jest.advanceTimersByTime(5 * 60 * 1000);
  expect(ring).toHaveBeenCalledTimes(1);
});
