test('every age up to 120', () => {
  for (let age = 0; age <= 120; age += 1) {
    let price = 7;
    if (age < 65) price = 10;
    if (age < 18) price = 5;
    if (age < 6) price = 0;
    expect(ticketPrice(age)).toBe(price);
  }
});
