function open() {
  render(TeaCounter);
  return {
    more: () => userEvent.click(screen.getByRole('button', { name: 'One more' })),
    again: () => userEvent.click(screen.getByRole('button', { name: 'Start again' })),
  };
}

describe('the tea counter', () => {
  it('is empty at first', () => {
    open();
    expect(screen.queryByText('Cups: 0')).not.toBeNull();
  });
  it('counts to five', () => {
    const page = open();
    for (let cup = 0; cup < 5; cup += 1) page.more();
    expect(screen.getByRole('status')).toHaveProperty('text', 'Cups: 5');
  });
  it('can be emptied', () => {
    const page = open();
    page.more();
    page.more();
    page.again();
    expect(screen.getByRole('status')).toMatchObject({ role: 'status', text: 'Cups: 0' });
  });
});
