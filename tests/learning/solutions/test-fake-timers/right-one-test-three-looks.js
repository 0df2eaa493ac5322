test('rings after three minutes and then is quiet', () => {
  jest.useFakeTimers();
  const ring = jest.fn();

  eggTimer(3, ring);
  jest.advanceTimersByTime(179999);
  expect(ring).toHaveBeenCalledTimes(0);
  jest.advanceTimersByTime(1);
  expect(ring).toHaveBeenCalledTimes(1);
  jest.advanceTimersByTime(10000000);
  expect(ring).toHaveBeenCalledTimes(1);

  jest.useRealTimers();
});
