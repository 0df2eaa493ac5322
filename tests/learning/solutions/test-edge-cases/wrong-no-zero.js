test('edges', () => {
  expect(ticketPrice(5)).toBe(0);
  expect(ticketPrice(6)).toBe(5);
  expect(ticketPrice(17)).toBe(5);
  expect(ticketPrice(18)).toBe(10);
  expect(ticketPrice(64)).toBe(10);
  expect(ticketPrice(65)).toBe(7);
});
