test('both ways', () => {
  expect(withdraw(7, 3)).toBe(4);

  let caught = null;
  try {
    withdraw(3, 7);
  } catch (error) {
    caught = error;
  }
  expect(caught).not.toBeNull();
  expect(caught.message).toBe('not enough money');
});
