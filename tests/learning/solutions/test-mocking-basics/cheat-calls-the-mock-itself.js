test('writes to those who have a parcel', () => {
  const send = jest.fn();
  send('ada@example.org', 'Your parcel is here');
  expect(send).toHaveBeenCalledTimes(1);
  expect(send).toHaveBeenCalledWith('ada@example.org', 'Your parcel is here');
});
