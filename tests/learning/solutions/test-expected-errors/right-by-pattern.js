test('takes everything', () => {
  expect(withdraw(20, 20)).toBe(0);
});

test('does not go below zero', () => {
  const tooMuch = () => withdraw(20, 21);
  expect(tooMuch).toThrow(/not enough/);
});
