test('fetches user successfully', async () => {
  const user = await fetchUser(1);
  expect(user.name).toBe('Test User');
});
