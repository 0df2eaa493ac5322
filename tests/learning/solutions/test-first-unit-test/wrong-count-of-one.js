test('one piece costs its price', () => {
  expect(total(9, 1)).toBe(9);
});
