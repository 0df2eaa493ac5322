function initials(name) {
  let at = 0;
  let letters = '';
  while (at >= 0) {
    letters = name[0];
    at = name.indexOf(' ', at) + 1;
  }
  return letters;
}
