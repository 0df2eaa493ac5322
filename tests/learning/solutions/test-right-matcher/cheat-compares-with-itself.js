test('cuts a line of tags into words', () => {
  expect(parseTags('red, green')).toEqual(parseTags('red, green'));
});
