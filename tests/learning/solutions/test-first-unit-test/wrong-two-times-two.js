test('two times two', () => {
  expect(total(2, 2)).toBe(4);
});
