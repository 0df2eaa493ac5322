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
test('serves the queue', async () => {
  desk.lend('Emma');
  desk.wait('Emma', 'ada');
  desk.wait('Emma', 'bob');
  await desk.giveBack('Dracula');
  expect(send).not.toHaveBeenCalled();
  await desk.giveBack('Emma');
  expect(shelf.has('Emma')).toBe(true);
  expect(send.mock.calls).toEqual([['ada', 'Emma is here']]);
  await desk.giveBack('Emma');
  expect(send.mock.calls[1]).toEqual(['bob', 'Emma is here']);
});
