test('cuts a line of tags into words', () => {
  const words = parseTags('red, green');
  expect(words).toBeInstanceOf(Array);
  expect(words).toHaveLength(2);
  expect(words[0]).toBe('red');
  expect(words[1]).toBe('green');
});
