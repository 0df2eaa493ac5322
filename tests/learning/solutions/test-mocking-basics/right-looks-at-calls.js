test('one mail, to Ada', () => {
  const send = jest.fn();
  remind([{ email: 'a', parcel: true }, { email: 'b', parcel: false }], send);
  expect(send.mock.calls).toEqual([['a', 'Your parcel is here']]);
});
