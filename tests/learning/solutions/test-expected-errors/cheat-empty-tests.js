test('gives back what is left', () => {});
test('refuses to give more than there is', () => {});
