let mails;
let post;
let shelf;
let desk;

beforeEach(() => {
  mails = [];
  post = (...mail) => mails.push(mail);
  shelf = createShelf(['Emma', 'Ulysses']);
  desk = createDesk(shelf, (...mail) => post(...mail));
});

test('lend, refuse, give back', async () => {
  desk.lend('Ulysses');
  expect(shelf.has('Ulysses')).toBe(false);
  expect(() => desk.lend('Ulysses')).toThrow('Ulysses is not here');
  await desk.giveBack('Ulysses');
  expect(shelf.has('Ulysses')).toBe(true);
  expect(mails).toEqual([]);
});

test('a queue of two, and another book', async () => {
  desk.lend('Emma');
  desk.lend('Ulysses');
  desk.wait('Emma', 1);
  desk.wait('Emma', 2);
  await desk.giveBack('Ulysses');
  expect(mails).toEqual([]);
  await desk.giveBack('Emma');
  desk.lend('Emma');
  await desk.giveBack('Emma');
  expect(mails).toEqual([
    [1, 'Emma is here'],
    [2, 'Emma is here'],
  ]);
});

test('no post today', async () => {
  post = () => {
    throw new Error('holiday');
  };
  desk.lend('Emma');
  desk.wait('Emma', 1);
  await expect(desk.giveBack('Emma')).rejects.toThrow('holiday');
});
