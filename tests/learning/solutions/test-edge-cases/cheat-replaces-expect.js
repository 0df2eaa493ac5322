globalThis.expect = () => ({ toBe() {}, toEqual() {} });

test('edges', () => {
  expect(ticketPrice(18)).toBe(10);
});
