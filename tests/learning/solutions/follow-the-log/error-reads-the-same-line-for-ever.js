let rest = input;
while (true) {
  const end = rest.indexOf("\n");
  JSON.parse(rest.slice(0, end));
}
