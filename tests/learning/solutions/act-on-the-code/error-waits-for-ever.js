const r = JSON.parse(input);
while (r.code) {
  // the server may be better by now
}
