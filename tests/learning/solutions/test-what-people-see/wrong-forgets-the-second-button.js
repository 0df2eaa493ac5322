test('counts', () => {
  render(TeaCounter);
  expect(screen.getByRole('status').text).toBe('Cups: 0');
  userEvent.click(screen.getByRole('button', { name: 'One more' }));
  userEvent.click(screen.getByRole('button', { name: 'One more' }));
  expect(screen.getByRole('status').text).toBe('Cups: 2');
});
