test('rings', () => {
  jest.useFakeTimers();
  const ring = jest.fn();
  eggTimer(5, ring);
  expect(ring).toHaveBeenCalledTimes(1);
});
