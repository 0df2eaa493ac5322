function initials(name) {
  return initials(name.trim());
}
