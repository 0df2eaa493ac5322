test('writes to those who have a parcel', () => {
  const send = () => {};
  const people = [
    { email: 'ada@example.org', parcel: true },
    { email: 'bob@example.org', parcel: false },
  ];

  remind(people, send);

  // How was send called?
});
