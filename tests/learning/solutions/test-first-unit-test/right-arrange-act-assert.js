test('three pieces at seven each', () => {
  const price = 7;
  const count = 3;

  const result = total(price, count);

  expect(result).toEqual(21);
});
