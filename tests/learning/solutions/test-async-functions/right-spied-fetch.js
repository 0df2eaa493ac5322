afterEach(() => {
  jest.useRealTimers();
});

test('fetches user successfully', async () => {
  const fetched = jest.spyOn(globalThis, 'fetch');

  await expect(fetchUser(42)).resolves.toStrictEqual({ id: 42, name: 'Test User' });

  expect(fetched).toHaveBeenCalledTimes(1);
  expect(fetched.mock.calls[0][0]).toMatch('/users/42');
  fetched.mockRestore();
});
