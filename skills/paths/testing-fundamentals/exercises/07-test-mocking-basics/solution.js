test('writes to those who have a parcel', () => {
  const send = jest.fn();
  const people = [
    { email: 'ada@example.org', parcel: true },
    { email: 'bob@example.org', parcel: false },
  ];

  remind(people, send);

  expect(send).toHaveBeenCalledTimes(1);
  expect(send).toHaveBeenCalledWith('ada@example.org', 'Your parcel is here');
});
