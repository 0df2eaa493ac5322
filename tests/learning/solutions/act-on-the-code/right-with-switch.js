const { code } = JSON.parse(input);
let action;
switch (code) {
  case "OVERLOADED":
  case "SHUTTING_DOWN":
  case "STORE_UNAVAILABLE":
    action = "wait";
    break;
  case "INVALID_PARAMETER":
  case "MISSING_PARAMETER":
    action = "correct the call";
    break;
  case "SKILL_NOT_FOUND":
    action = "search";
    break;
  default:
    action = "ask a person";
}
console.log(`${code}: ${action}`);
