function initials(name) {
  const letters = [];
  for (;;) letters.push(new Array(1000).fill(name));
}
