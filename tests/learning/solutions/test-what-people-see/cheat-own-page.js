const Page = () => ({ draw: () => [{ role: 'status', text: 'Cups: 0' }] });

test('starts with no cups', () => {
  render(Page);
  expect(screen.getByRole('status').text).toBe('Cups: 0');
});
