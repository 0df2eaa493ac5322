test('multiplies the price by the count', () => {
  total(3, 4);
});
