test('a grown-up pays the full price', () => {
  expect(ticketPrice(30)).toBe(10);
});
