console.log("OVERLOADED: wait\nSKILL_NOT_FOUND: search\nINVALID_PARAMETER: correct the call");
