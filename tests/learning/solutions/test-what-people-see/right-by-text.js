test('a whole afternoon', () => {
  render(TeaCounter);
  expect(screen.getByText('Cups: 0')).toBeDefined();

  userEvent.click(screen.getByRole('button', { name: 'One more' }));
  screen.getByText('Cups: 1');

  userEvent.click(screen.getByRole('button', { name: 'One more' }));
  userEvent.click(screen.getByRole('button', { name: 'One more' }));
  screen.getByText('Cups: 3');
  expect(screen.queryByText('Cups: 1')).toBeNull();

  userEvent.click(screen.getByRole('button', { name: 'Start again' }));
  screen.getByText('Cups: 0');
});
