test('writes to those who have a parcel', () => {
  const mails = [];
  const send = (to, text) => mails.push({ to, text });

  remind(
    [
      { email: 'bob@example.org', parcel: false },
      { email: 'ada@example.org', parcel: true },
      { email: 'eve@example.org', parcel: true },
    ],
    send,
  );

  expect(mails).toEqual([
    { to: 'ada@example.org', text: 'Your parcel is here' },
    { to: 'eve@example.org', text: 'Your parcel is here' },
  ]);
});
