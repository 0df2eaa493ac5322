function initials(name) {
  let letters = '';
  let before = ' ';
  for (const letter of name) {
    if (before === ' ' && letter !== ' ') {
      letters += letter.toUpperCase();
    }
    before = letter;
  }
  return letters;
}
