test('rings', () => {
  jest.useFakeTimers();
  const ring = jest.fn();
  eggTimer(5, ring);
  expect(ring).not.toHaveBeenCalled();
  jest.advanceTimersByTime(5 * 60);
  expect(ring).toHaveBeenCalledTimes(1);
});
