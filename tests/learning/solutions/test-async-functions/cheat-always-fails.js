test('fetches user successfully', async () => {
  const user = await fetchUser(1);
  throw new Error('not the user that was expected');
});
