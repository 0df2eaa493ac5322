test('starts with no cups', () => {
  render(TeaCounter);
  expect(screen.getByRole('status').text).toBe('Cups: 0');
});

// Now press the buttons.
