test('a cold day', async () => {
  const weather = { temperature: jest.fn().mockResolvedValue(3) };
  expect(await weather.temperature('Graz')).toBe(3);
  expect(weather.temperature).toHaveBeenCalledWith('Graz');
});
test('silence', async () => {
  const weather = { temperature: jest.fn().mockRejectedValue(new Error('no')) };
  await expect(weather.temperature('Graz')).rejects.toThrow('no');
});
