let mails, shelf, desk, broken;

beforeEach(() => {
  mails = [];
  broken = false;
  shelf = createShelf(['A', 'B']);
  desk = createDesk(shelf, async (reader, text) => {
    if (broken) throw new Error('broken');
    mails.push(`${reader}: ${text}`);
  });
});

it('lends once', () => {
  desk.lend('A');
  expect([shelf.has('A'), shelf.has('B')]).toEqual([false, true]);
  expect(() => desk.lend('A')).toThrow('A is not here');
  expect(() => desk.lend('Z')).toThrow('Z is not here');
});

it('takes back', async () => {
  desk.lend('B');
  await desk.giveBack('B');
  expect(shelf.has('B')).toBe(true);
  expect(mails).toEqual([]);
});

it('serves each queue in its order', async () => {
  desk.lend('A');
  desk.lend('B');
  for (const name of ['x', 'y', 'z']) desk.wait('A', name);
  await desk.giveBack('B');
  expect(mails).toHaveLength(0);
  await desk.giveBack('A');
  desk.lend('A');
  await desk.giveBack('A');
  expect(mails).toEqual(['x: A is here', 'y: A is here']);
});

it('tells when the mail fails', () => {
  broken = true;
  desk.lend('A');
  desk.wait('A', 'x');
  return expect(desk.giveBack('A')).rejects.toThrow('broken');
});
