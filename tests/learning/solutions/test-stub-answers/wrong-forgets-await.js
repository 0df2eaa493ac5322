test('a cold day', () => {
  const weather = { temperature: jest.fn().mockResolvedValue(3) };
  expect(advice('Graz', weather)).toBe('Take a coat');
});
