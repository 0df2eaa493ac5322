const r = JSON.parse(input);
const what = r.status >= 500 || r.status === 429 ? "wait" : r.status === 404 ? "search" : "correct the call";
console.log(r.code + ": " + what);
