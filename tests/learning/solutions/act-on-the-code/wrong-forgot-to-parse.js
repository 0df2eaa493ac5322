console.log(input.code + ": " + (input.code === "OVERLOADED" ? "wait" : "ask a person"));
