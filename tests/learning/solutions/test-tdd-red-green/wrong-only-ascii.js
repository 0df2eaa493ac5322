function initials(name) {
  return (name.toUpperCase().match(/\b[A-Z]/g) || []).join('');
}
