test('cuts a line of tags into words', () => {
  const expected = ['red', 'green'];
  expect(parseTags('red, green')).toBe(expected);
});
