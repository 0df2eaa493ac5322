test('finds red', () => {
  expect(parseTags('red, green')).toContain('red');
});
