const prices = [
  [0, 0],
  [5, 0],
  [6, 5],
  [17, 5],
  [18, 10],
  [64, 10],
  [65, 7],
  [99, 7],
];

for (const [age, price] of prices) {
  test(`age ${age} pays ${price}`, () => {
    expect(ticketPrice(age)).toBe(price);
  });
}
