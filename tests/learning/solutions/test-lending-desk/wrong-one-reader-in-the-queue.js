let shelf, desk, send;
beforeEach(() => {
  send = jest.fn().mockResolvedValue(undefined);
  shelf = createShelf(['Emma', 'Dracula']);
  desk = createDesk(shelf, send);
});
test('lends', () => {
  desk.lend('Emma');
  expect(shelf.has('Emma')).toBe(false);
  expect(() => desk.lend('Emma')).toThrow('Emma is not here');
});
test('writes to who waits', async () => {
  desk.lend('Emma');
  desk.wait('Emma', 'ada');
  await desk.giveBack('Emma');
  expect(shelf.has('Emma')).toBe(true);
  expect(send).toHaveBeenCalledTimes(1);
  expect(send).toHaveBeenCalledWith('ada', 'Emma is here');
});
