const press = (name) => userEvent.click(screen.getByRole('button', { name }));
const shown = () => screen.getByRole('status').text;

beforeEach(() => {
  render(TeaCounter);
});

test('starts with no cups', () => {
  expect(shown()).toBe('Cups: 0');
});

test('counts each cup', () => {
  press('One more');
  expect(shown()).toBe('Cups: 1');
  press('One more');
  expect(shown()).toBe('Cups: 2');
});

test('starts again', () => {
  press('One more');
  press('Start again');
  expect(shown()).toBe('Cups: 0');
});
