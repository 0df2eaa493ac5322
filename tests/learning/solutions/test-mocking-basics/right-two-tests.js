let send;

beforeEach(() => {
  send = jest.fn();
});

it('is silent when nothing waits', () => {
  remind([{ email: 'bob@example.org', parcel: false }], send);
  expect(send).not.toHaveBeenCalled();
});

it('writes one mail for a parcel', () => {
  remind([{ email: 'ada@example.org', parcel: true }], send);
  expect(send).toHaveBeenCalledTimes(1);
  expect(send).toHaveBeenLastCalledWith('ada@example.org', 'Your parcel is here');
});
