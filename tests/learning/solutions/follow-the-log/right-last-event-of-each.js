const events = input.split("\n").filter(Boolean).map((l) => JSON.parse(l).event).filter(Boolean);
const ids = [...new Set(events.map((e) => e.skill_id))].sort();
const last = (id) => events.findLast((e) => e.skill_id === id).active_version;
const lines = ids.filter((id) => last(id) > 0).map((id) => id + " " + last(id));
if (lines.length) console.log(lines.join("\n"));
