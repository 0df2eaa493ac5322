describe('total', () => {
  it('multiplies', () => {
    expect(total(5, 3)).toBe(15);
  });

  it('is nothing for no pieces', () => {
    expect(total(5, 0)).toBe(0);
  });
});
