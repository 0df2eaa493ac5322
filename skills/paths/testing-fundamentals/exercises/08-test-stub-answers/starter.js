test('a cold day', async () => {
  const weather = { temperature: jest.fn().mockResolvedValue(3) };
  expect(await advice('Graz', weather)).toBe('Take a coat');
});

// What about a warm day? What if the station does not answer?
