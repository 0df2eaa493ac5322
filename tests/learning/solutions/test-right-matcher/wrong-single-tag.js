test('one tag', () => {
  expect(parseTags('red')).toEqual(['red']);
});
