test('rings after five minutes, once', () => {
  jest.useFakeTimers();
  const ring = jest.fn();
  eggTimer(5, ring);

  jest.advanceTimersByTime(299_999);
  expect(ring).not.toHaveBeenCalled();
  jest.advanceTimersByTime(1);
  expect(ring).toHaveBeenCalledTimes(1);
  jest.runAllTimers();
  expect(ring).toHaveBeenCalledTimes(1);
  jest.useRealTimers();
});
