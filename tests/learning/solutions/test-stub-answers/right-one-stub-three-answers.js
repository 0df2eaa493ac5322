test('three days in a row', async () => {
  const temperature = jest
    .fn()
    .mockResolvedValueOnce(0)
    .mockResolvedValueOnce(30)
    .mockRejectedValueOnce(new Error('storm'));
  const weather = { temperature };

  expect(await advice('Graz', weather)).toBe('Take a coat');
  expect(await advice('Graz', weather)).toBe('A shirt will do');
  expect(await advice('Graz', weather)).toBe('Look out of the window');
  expect(temperature.mock.calls).toEqual([['Graz'], ['Graz'], ['Graz']]);
});
