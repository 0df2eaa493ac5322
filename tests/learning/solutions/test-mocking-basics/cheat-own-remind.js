const remindLikeIt = (people, send) => {
  for (const person of people) if (person.parcel) send(person.email, 'Your parcel is here');
};

test('writes to those who have a parcel', () => {
  const send = jest.fn();
  remindLikeIt([{ email: 'a', parcel: true }, { email: 'b', parcel: false }], send);
  expect(send.mock.calls).toEqual([['a', 'Your parcel is here']]);
});
