describe('ticketPrice', () => {
  test('is free from birth to 5', () => {
    expect(ticketPrice(0)).toBe(0);
    expect(ticketPrice(5)).toBe(0);
  });

  test('is 5 from 6 to 17', () => {
    expect(ticketPrice(6)).toBe(5);
    expect(ticketPrice(17)).toBe(5);
  });

  test('is 10 from 18 to 64', () => {
    expect(ticketPrice(18)).toBe(10);
    expect(ticketPrice(64)).toBe(10);
  });

  test('is 7 from 65 on', () => {
    expect(ticketPrice(65)).toBe(7);
  });
});
