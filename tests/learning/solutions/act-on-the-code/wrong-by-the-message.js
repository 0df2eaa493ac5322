const r = JSON.parse(input);
const found = ["OVERLOADED", "SHUTTING_DOWN", "STORE_UNAVAILABLE"].find((c) => input.includes(c));
if (found) console.log(found + ": wait");
else if (input.includes("SKILL_NOT_FOUND")) console.log("SKILL_NOT_FOUND: search");
else if (input.includes("PARAMETER")) console.log(r.code + ": correct the call");
else console.log(r.code + ": ask a person");
