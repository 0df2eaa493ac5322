let shelf;
let desk;
let send;

beforeEach(() => {
  send = jest.fn().mockResolvedValue(undefined);
  shelf = createShelf(['Emma', 'Dracula']);
  desk = createDesk(shelf, send);
});

describe('lending', () => {
  test('takes the book off the shelf, and only this one', () => {
    desk.lend('Emma');
    expect(shelf.has('Emma')).toBe(false);
    expect(shelf.has('Dracula')).toBe(true);
  });

  test('refuses a book that is not there', () => {
    desk.lend('Emma');
    expect(() => desk.lend('Emma')).toThrow('Emma is not here');
  });
});

describe('giving back', () => {
  test('puts the book on the shelf and writes to nobody', async () => {
    desk.lend('Emma');
    await desk.giveBack('Emma');
    expect(shelf.has('Emma')).toBe(true);
    expect(send).not.toHaveBeenCalled();
  });

  test('writes to those who wait, one after the other', async () => {
    desk.lend('Emma');
    desk.wait('Emma', 'ada');
    desk.wait('Emma', 'bob');

    await desk.giveBack('Emma');
    expect(send.mock.calls).toEqual([['ada', 'Emma is here']]);

    desk.lend('Emma');
    await desk.giveBack('Emma');
    expect(send.mock.calls).toEqual([
      ['ada', 'Emma is here'],
      ['bob', 'Emma is here'],
    ]);
  });

  test('keeps the queues of the books apart', async () => {
    desk.lend('Emma');
    desk.lend('Dracula');
    desk.wait('Emma', 'ada');
    await desk.giveBack('Dracula');
    expect(send).not.toHaveBeenCalled();
  });

  test('fails when the mail cannot be sent, but keeps the book', async () => {
    send.mockRejectedValue(new Error('no network'));
    desk.lend('Emma');
    desk.wait('Emma', 'ada');
    await expect(desk.giveBack('Emma')).rejects.toThrow('no network');
    expect(shelf.has('Emma')).toBe(true);
  });
});
