test('writes one mail', () => {
  const send = jest.fn();
  remind([{ email: 'a', parcel: true }, { email: 'b', parcel: false }], send);
  expect(send).toHaveBeenCalledTimes(1);
});
