const active = new Map();

for (const line of input.split("\n")) {
  if (line.trim() === "") continue;
  const { event } = JSON.parse(line);
  if (event.active_version === 0) {
    active.delete(event.skill_id);
  } else {
    active.set(event.skill_id, event.active_version);
  }
}

for (const id of [...active.keys()].sort()) {
  console.log(id + " " + active.get(id));
}
