test('a cold day', async () => {
  const weather = { temperature: jest.fn().mockResolvedValue(3) };
  expect(await advice('Graz', weather)).toBe('Take a coat');
  expect(weather.temperature).toHaveBeenCalledWith('Graz');
});
