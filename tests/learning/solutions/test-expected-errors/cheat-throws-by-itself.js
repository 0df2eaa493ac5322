test('gives back what is left', () => {
  expect(withdraw(50, 20)).toBe(30);
});
test('refuses to give more than there is', () => {
  expect(() => {
    throw new RangeError('not enough money');
  }).toThrow('not enough money');
});
