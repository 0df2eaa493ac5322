test.name = 'all rules hold';
test('lends', () => {});
test('refuses', () => {});
test('gives back', () => {});
test('serves the queue', () => {});
test('tells when the mail fails', () => {});
