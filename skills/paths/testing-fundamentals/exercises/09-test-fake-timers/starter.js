test('rings after five minutes', () => {
  jest.useFakeTimers();
  const ring = jest.fn();

  eggTimer(5, ring);

  expect(ring).not.toHaveBeenCalled();
  // Now let the time go by.
});
