if (input.includes("refund")) console.log("SKILL_NOT_FOUND: search");
else if (input.includes("429")) console.log("OVERLOADED: wait");
else console.log("INVALID_PARAMETER: correct the call");
