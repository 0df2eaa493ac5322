test('edges', () => {
  const ages = [0, 5, 6, 17, 18, 64, 65];
  expect(ages.map(ticketPrice)).toEqual([0, 0, 5, 5, 5, 10, 7]);
});
