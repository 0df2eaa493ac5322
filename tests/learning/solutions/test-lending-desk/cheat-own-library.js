const shelf = { has: () => false };
const desk = { lend() {} };

test('a book that is lent is not on the shelf', () => {
  desk.lend('Emma');
  expect(shelf.has('Emma')).toBe(false);
});
