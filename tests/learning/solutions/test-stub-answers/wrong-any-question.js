test('a cold day', async () => {
  const weather = { temperature: jest.fn().mockResolvedValue(3) };
  expect(await advice('Graz', weather)).toBe('Take a coat');
});
test('a warm day', async () => {
  const weather = { temperature: jest.fn().mockResolvedValue(24) };
  expect(await advice('Graz', weather)).toBe('A shirt will do');
});
test('silence', async () => {
  const weather = { temperature: jest.fn().mockRejectedValue(new Error('no')) };
  expect(await advice('Graz', weather)).toBe('Look out of the window');
});
