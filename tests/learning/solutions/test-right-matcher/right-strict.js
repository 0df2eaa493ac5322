test('cuts a line of tags into words', () => {
  const words = parseTags('blue , yellow,  pink');
  expect(words).toStrictEqual(['blue', 'yellow', 'pink']);
});
