beforeEach(() => render(TeaCounter));

test('starts with no cups', () => {
  expect(screen.getByRole('status').text).toBe('Cups: 0');
});
test('counts a cup', () => {
  userEvent.click(screen.getByRole('button', { name: 'One more' }));
  expect(screen.getByRole('status').text).toBe('Cups: 1');
});
test('starts again', () => {
  userEvent.click(screen.getByRole('button', { name: 'One more' }));
  userEvent.click(screen.getByRole('button', { name: 'Start again' }));
  expect(screen.getByRole('status').text).toBe('Cups: 0');
});
