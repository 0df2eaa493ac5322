test('rings', () => {
  jest.useFakeTimers();
  const ring = jest.fn();
  eggTimer(5, ring);
  jest.advanceTimersByTime(4 * 60 * 1000);
  expect(ring).not.toHaveBeenCalled();
  jest.advanceTimersByTime(60 * 60 * 1000);
  expect(ring).toHaveBeenCalled();
});
