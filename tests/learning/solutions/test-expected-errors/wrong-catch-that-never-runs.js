test('gives back what is left', () => {
  expect(withdraw(50, 20)).toBe(30);
});
test('refuses to give more than there is', () => {
  try {
    withdraw(10, 20);
  } catch (error) {
    expect(error.message).toBe('not enough money');
  }
});
