const open = (send = jest.fn(async () => {})) => {
  const shelf = createShelf(['Emma', 'Ulysses']);
  return { shelf, send, desk: createDesk(shelf, send) };
};

test('a whole day', async () => {
  const { shelf, send, desk } = open();

  desk.lend('Emma');
  expect(shelf.has('Emma')).toBe(false);
  expect(() => desk.lend('Emma')).toThrow(/^Emma is not here$/);

  desk.wait('Emma', 'cem');
  desk.wait('Ulysses', 'dora');
  desk.wait('Emma', 'eva');

  await desk.giveBack('Emma');
  expect(shelf.has('Emma')).toBe(true);
  expect(send).toHaveBeenCalledTimes(1);
  expect(send).toHaveBeenLastCalledWith('cem', 'Emma is here');

  desk.lend('Emma');
  await desk.giveBack('Emma');
  expect(send).toHaveBeenCalledTimes(2);
  expect(send).toHaveBeenLastCalledWith('eva', 'Emma is here');

  desk.lend('Emma');
  await desk.giveBack('Emma');
  expect(send).toHaveBeenCalledTimes(2);
});

test('another queue first', async () => {
  const { send, desk } = open();
  desk.wait('Ulysses', 'dora');
  desk.lend('Emma');
  await desk.giveBack('Emma');
  expect(send).not.toHaveBeenCalled();
});

test('a mail that fails', async () => {
  const { shelf, desk } = open(jest.fn(async () => { throw new Error('mailbox full'); }));
  desk.lend('Emma');
  desk.wait('Emma', 'cem');
  let error = null;
  try {
    await desk.giveBack('Emma');
  } catch (caught) {
    error = caught;
  }
  expect(error).toBeInstanceOf(Error);
  expect(error.message).toBe('mailbox full');
  expect(shelf.has('Emma')).toBe(true);
});
