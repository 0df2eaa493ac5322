test('gives back what is left', () => {
  // withdraw(50, 20) should leave 30.
});

test('refuses to give more than there is', () => {
  expect(withdraw(10, 20)).toThrow();
});
