const state = {};
input.split("\n").filter((l) => l.trim()).forEach((l) => {
  const e = JSON.parse(l).event;
  if (e) state[e.skill_id] = e.active_version;
});
Object.entries(state)
  .filter(([, version]) => version !== 0)
  .sort(([a], [b]) => (a < b ? -1 : 1))
  .forEach(([id, version]) => console.log(`${id} ${version}`));
