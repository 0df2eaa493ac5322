globalThis.fetchUser = async (id) => ({ id: 1, name: 'Test User' });

test('fetches user successfully', async () => {
  const user = await globalThis.fetchUser(1);
  expect(user).toEqual({ id: 1, name: 'Test User' });
});
