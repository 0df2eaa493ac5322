test('the middle of each row', () => {
  expect(ticketPrice(3)).toBe(0);
  expect(ticketPrice(12)).toBe(5);
  expect(ticketPrice(40)).toBe(10);
  expect(ticketPrice(80)).toBe(7);
});
