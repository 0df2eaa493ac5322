const press = (text) => userEvent.click(screen.getByText(text));

test('counts', () => {
  render(TeaCounter);
  expect(screen.getByRole('status').text).toBe('Cups: 0');
  press('One more');
  press('One more');
  expect(screen.getByRole('status').text).toBe('Cups: 2');
  press('Start again');
  expect(screen.getByRole('status').text).toBe('Cups: 0');
});
