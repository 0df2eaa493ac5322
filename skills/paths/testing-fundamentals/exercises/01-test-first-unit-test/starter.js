// total(price, count) is there already. You only write the test.

test('multiplies the price by the count', () => {
  // Call total(3, 4) here and say what should come out.
});
