let shelf;
let desk;
let send;

beforeEach(() => {
  send = jest.fn().mockResolvedValue(undefined);
  shelf = createShelf(['Emma', 'Dracula']);
  desk = createDesk(shelf, send);
});

test('a book that is lent is not on the shelf', () => {
  desk.lend('Emma');
  expect(shelf.has('Emma')).toBe(false);
});
