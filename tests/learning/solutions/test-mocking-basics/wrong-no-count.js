test('writes to Ada', () => {
  const send = jest.fn();
  remind([{ email: 'a', parcel: true }, { email: 'b', parcel: false }], send);
  expect(send).toHaveBeenCalledWith('a', 'Your parcel is here');
});
