const refusal = JSON.parse(input);

const byCode = {
  OVERLOADED: "wait",
  SHUTTING_DOWN: "wait",
  STORE_UNAVAILABLE: "wait",
  INVALID_PARAMETER: "correct the call",
  MISSING_PARAMETER: "correct the call",
  SKILL_NOT_FOUND: "search",
};

const action = byCode[refusal.code] ?? "ask a person";
console.log(refusal.code + ": " + action);
