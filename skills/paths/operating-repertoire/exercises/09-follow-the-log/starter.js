// Prints every event. What is wanted is the state after the last one.
for (const line of input.split("\n")) {
  if (line === "") continue;
  const { event } = JSON.parse(line);
  console.log(event.skill_id + " " + event.version_number);
}
