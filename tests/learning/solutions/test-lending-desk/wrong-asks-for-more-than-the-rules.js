test('gives back nothing', async () => {
  const send = jest.fn().mockResolvedValue(undefined);
  const shelf = createShelf(['Emma']);
  const desk = createDesk(shelf, send);
  expect(desk.lend('Emma')).toBeUndefined();
  expect(shelf.take('Emma')).toBe(false);
});
