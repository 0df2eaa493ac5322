test('finds two tags', () => {
  expect(parseTags('red, green')).toHaveLength(2);
});
