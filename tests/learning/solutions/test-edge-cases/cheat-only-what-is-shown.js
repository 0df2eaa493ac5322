test('17 and 18', () => {
  expect(ticketPrice(17)).toBe(5);
  expect(ticketPrice(18)).toBe(10);
});
