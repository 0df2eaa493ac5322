function parseTags(text) {
  return text.split(',');
}
