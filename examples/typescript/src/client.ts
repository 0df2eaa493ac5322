/** Publishes the skill text_stats, finds it, loads it, and calls its tool. */

import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { connect, RepertoireError } from "@repertoire/client";
import { address } from "./address.js";

const SKILL = fileURLToPath(new URL("../../skills/text_stats", import.meta.url));
const TEXT = "The quick fox. The lazy dog! Don't the fox and the dog agree?";

const repertoire = connect(address());

// Publishing the same bytes again gives the version that there is.
const published = await repertoire.publish(SKILL, { id: "examples/text/text_stats" });
console.log(`published ${published.skillId} ${published.version?.semanticVersion}`);

// What was published is found within a second.
let found: string[] = [];
for (let attempt = 0; attempt < 20; attempt++) {
  const results = await repertoire.search("how long a text is, and its most frequent words", { limit: 1 });
  found = results.map(({ id }) => id);
  if (found[0] === published.skillId) break;
  await setTimeout(100);
}
console.log(`found ${found.join(", ")}`);

// What the client has no method of its own for, the generated stubs do.
const together = await repertoire.composition.composeSkills({ skills: ["text_stats", "write_sql"] });
console.log(
  `composed: allowed ${together.allowedTools.join(", ")}; forbidden ${together.forbiddenTools.join(", ")}`,
);

const session = await repertoire.load("text_stats");
console.log(`loaded: tools ${session.tools.join(", ")}; resources ${session.resources.join(", ")}`);
console.log(session.content.split("\n").find((line) => line.startsWith("Words are counted by")));

const called = await session.call("text_count_words", { text: TEXT, top: 3 });
console.log(`called: ${called.text} (${called.value?.words})`);
console.log(`read: ${(await session.read("samples")).split("\n")[1]}`);

try {
  // The worker refuses this one: with a code for programs, a sentence, and what to do next.
  await session.call("text_count_words", { text: TEXT, top: 0 });
} catch (error) {
  if (!(error instanceof RepertoireError)) throw error;
  console.log(`refused: ${error.code}: ${error.message}`);
  for (const step of error.next) console.log(`  next: ${step}`);
}
repertoire.close();
