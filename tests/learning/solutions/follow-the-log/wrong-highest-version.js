const active = new Map();

for (const line of input.split("\n")) {
  if (line.trim() === "") continue;
  const { event } = JSON.parse(line);
  if (event === undefined) continue;
  if (event.active_version === 0) {
    active.delete(event.skill_id);
  } else {
    active.set(event.skill_id, Math.max(event.active_version, active.get(event.skill_id) ?? 0));
  }
}

for (const id of [...active.keys()].sort()) {
  console.log(id + " " + active.get(id));
}
