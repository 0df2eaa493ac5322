test('fetches user successfully', () =>
  fetchUser(1).then((user) => {
    expect(user.id).toBe(1);
    expect(user.name).toBe('Test User');
  }));
