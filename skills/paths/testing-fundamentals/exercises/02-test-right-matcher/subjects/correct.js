function parseTags(text) {
  return text.split(',').map((word) => word.trim());
}
