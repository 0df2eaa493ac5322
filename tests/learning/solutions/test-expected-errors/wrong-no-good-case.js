test('refuses to give more than there is', () => {
  expect(() => withdraw(10, 20)).toThrow('not enough money');
});
