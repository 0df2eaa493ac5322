test('fetches user successfully', async () => {
  fetchUser(1).then((user) => {
    expect(user).toEqual({ id: 1, name: 'Test User' });
  });
});
