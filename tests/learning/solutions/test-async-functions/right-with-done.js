test('fetches user successfully', (done) => {
  fetchUser(1)
    .then((user) => {
      expect(user).toEqual({ id: 1, name: 'Test User' });
      done();
    })
    .catch(done);
});
