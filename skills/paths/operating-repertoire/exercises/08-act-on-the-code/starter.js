// Looks at the words. There is a better part to look at.
if (input.includes("too much")) {
  console.log("OVERLOADED: wait");
} else {
  console.log("ask a person");
}
