const station = (degrees) => {
  const asked = [];
  return {
    asked,
    async temperature(city) {
      asked.push(city);
      if (degrees === undefined) throw new Error('silent');
      return degrees;
    },
  };
};

test('cold', async () => {
  const weather = station(-5);
  expect(await advice('Linz', weather)).toBe('Take a coat');
  expect(weather.asked).toEqual(['Linz']);
});

test('warm', async () => {
  expect(await advice('Linz', station(10))).toBe('A shirt will do');
});

test('silent', async () => {
  expect(await advice('Linz', station())).toBe('Look out of the window');
});
