test('first age of each row', () => {
  expect(ticketPrice(0)).toBe(0);
  expect(ticketPrice(6)).toBe(5);
  expect(ticketPrice(18)).toBe(10);
  expect(ticketPrice(65)).toBe(7);
});
