test('rings', () => {
  jest.useFakeTimers();
  const ring = jest.fn();
  setTimeout(ring, 5 * 60 * 1000);
  expect(ring).not.toHaveBeenCalled();
  jest.advanceTimersByTime(5 * 60 * 1000);
  expect(ring).toHaveBeenCalledTimes(1);
});
