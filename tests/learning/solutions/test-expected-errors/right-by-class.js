describe('withdraw', () => {
  it('leaves the rest', () => {
    expect(withdraw(100, 1)).toBe(99);
  });
  it('throws a RangeError', () => {
    expect(() => withdraw(1, 100)).toThrow(RangeError);
  });
});
