test('fetches user successfully', () => {
  return expect(fetchUser(1)).resolves.toEqual({ id: 1, name: 'Test User' });
});
