function initials(name) {
  const trimmed = name.trim();
  if (trimmed === '') return '';
  let result = '';
  trimmed.split(/\s+/).forEach(function (word) {
    result = result + word.slice(0, 1);
  });
  return result.toUpperCase();
}
