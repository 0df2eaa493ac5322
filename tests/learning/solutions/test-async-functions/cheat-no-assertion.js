test('fetches user successfully', async () => {
  await fetchUser(1);
});
