globalThis.fetch = jest.fn().mockResolvedValue({
  ok: true,
  json: () => ({ name: 'Test User' }),
});

test('fetches user successfully', async () => {
  const user = await fetchUser(1);
  expect(user).toEqual({ id: 1, name: 'Test User' });
});
