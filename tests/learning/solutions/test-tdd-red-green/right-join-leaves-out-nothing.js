function initials(name) {
  return name.split(' ').map((word) => word[0]).join('').toUpperCase();
}
