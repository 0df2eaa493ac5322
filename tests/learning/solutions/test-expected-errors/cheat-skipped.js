test.skip('gives back what is left', () => {
  expect(withdraw(50, 20)).toBe(30);
});
test.skip('refuses to give more than there is', () => {
  expect(() => withdraw(10, 20)).toThrow('not enough money');
});
