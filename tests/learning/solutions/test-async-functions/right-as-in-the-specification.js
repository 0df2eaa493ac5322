test('fetches user successfully', async () => {
  const user = await fetchUser(1);
  expect(user).toEqual({ id: 1, name: 'Test User' });
});
