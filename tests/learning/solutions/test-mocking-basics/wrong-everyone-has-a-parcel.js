test('writes to Ada', () => {
  const send = jest.fn();
  remind([{ email: 'a', parcel: true }], send);
  expect(send).toHaveBeenCalledTimes(1);
  expect(send).toHaveBeenCalledWith('a', 'Your parcel is here');
});
