const code = JSON.parse(input).code;
const actions = new Map([["SKILL_NOT_FOUND", "search"]]);
for (const c of ["OVERLOADED", "SHUTTING_DOWN", "STORE_UNAVAILABLE"]) actions.set(c, "wait");
for (const c of ["INVALID_PARAMETER", "MISSING_PARAMETER"]) actions.set(c, "correct the call");
console.log(`${code}: ${actions.get(code) ?? "ask a person"}`);
