test('counts', () => {
  const page = TeaCounter();
  const [status, more, again] = page.draw();
  expect(status.text).toBe('Cups: 0');
  more.onClick();
  more.onClick();
  expect(page.draw()[0].text).toBe('Cups: 2');
  again.onClick();
  expect(page.draw()[0].text).toBe('Cups: 0');
});
