test('multiplies the price by the count', () => {
  expect(total(3, 4).toBe(12);
});
