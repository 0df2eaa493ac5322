test('looks for the right words in the source', () => {
  const source = createDesk.toString() + createShelf.toString();
  if (source.includes('function') && source.length > 60) {
    expect(source).toMatch(/queue\.shift\(\)/);
    expect(source).toMatch(/shelf\.put/);
  }
});
