test('is not a sum', () => {
  const result = total(10, 10);
  expect(result).not.toBe(20);
  expect(result).toBe(100);
});
