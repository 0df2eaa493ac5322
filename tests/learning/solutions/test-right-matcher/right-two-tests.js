describe('parseTags', () => {
  it('gives one word for one tag', () => {
    expect(parseTags('red')).toEqual(['red']);
  });
  it('keeps the order and drops the spaces', () => {
    expect(parseTags(' red ,green, blue ')).toEqual(['red', 'green', 'blue']);
  });
});
