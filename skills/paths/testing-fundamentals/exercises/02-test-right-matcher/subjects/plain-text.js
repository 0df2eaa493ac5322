function parseTags(text) {
  return text.replace(/\s*,\s*/g, ',').trim();
}
