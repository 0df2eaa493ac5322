beforeEach(() => {
  globalThis.fetch = jest.fn().mockResolvedValue({
    ok: true,
    json: async () => ({ name: 'Grace' }),
  });
});

test('fetches user successfully', async () => {
  const user = await fetchUser(7);
  expect(user).toStrictEqual({ id: 7, name: 'Grace' });
  expect(fetch).toHaveBeenCalledWith('/users/7');
});

test('lets an error of the network through', async () => {
  globalThis.fetch.mockRejectedValue(new Error('no network'));
  await expect(fetchUser(7)).rejects.toThrow('no network');
});
