const weather = {
  temperature: jest.fn().mockImplementation(async (city) => {
    if (city === 'Graz') return 25;
    if (city === 'Oslo') return 1;
    throw new Error(`no station in ${city}`);
  }),
};

it('knows warm Graz', () => expect(advice('Graz', weather)).resolves.toBe('A shirt will do'));
it('knows cold Oslo', () => expect(advice('Oslo', weather)).resolves.toBe('Take a coat'));
it('knows nothing of Atlantis', () =>
  expect(advice('Atlantis', weather)).resolves.toBe('Look out of the window'));
