let shelf, desk, send;
beforeEach(() => {
  send = jest.fn().mockResolvedValue(undefined);
  shelf = createShelf(['Emma']);
  desk = createDesk(shelf, send);
});
test('lends and takes back', async () => {
  desk.lend('Emma');
  expect(shelf.has('Emma')).toBe(false);
  expect(() => desk.lend('Emma')).toThrow('Emma is not here');
  await desk.giveBack('Emma');
  expect(shelf.has('Emma')).toBe(true);
});
