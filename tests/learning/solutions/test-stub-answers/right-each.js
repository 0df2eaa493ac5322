test.each([
  [-20, 'Take a coat'],
  [9.9, 'Take a coat'],
  [10, 'A shirt will do'],
  [35, 'A shirt will do'],
])('%d degrees', async (degrees, text) => {
  const weather = { temperature: jest.fn().mockResolvedValue(degrees) };
  await expect(advice('Wels', weather)).resolves.toBe(text);
  expect(weather.temperature).toHaveBeenCalledWith('Wels');
});

test('no answer', async () => {
  const weather = { temperature: () => Promise.reject(new Error('asleep')) };
  await expect(advice('Wels', weather)).resolves.toBe('Look out of the window');
});
