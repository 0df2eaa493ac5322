/** Does what a test says with the client, and tells in JSON, a line each. */

import { setTimeout as sleep } from "node:timers/promises";
import { Code, Conflict, connect, Denied, NotFound, Refused, RepertoireError, Unavailable, v1 } from "@repertoire/client";

const KINDS = { not_found: NotFound, refused: Refused, conflict: Conflict, denied: Denied, unavailable: Unavailable };

const tell = (what: object) => console.log(JSON.stringify(what));

async function run(command: string, ...given: string[]): Promise<void> {
  const repertoire = connect();
  const [first = "", second = ""] = given;
  try {
    switch (command) {
      case "publish": {
        const { skillId, outcome } = await repertoire.publish(first, { id: second });
        tell({ skill_id: skillId, outcome: `PUBLISH_OUTCOME_${v1.PublishOutcome[outcome]}` });
        break;
      }
      case "search": {
        const found = await repertoire.search(first, { limit: 1 });
        tell({ found: found.map(({ id }) => id) });
        break;
      }
      case "load": {
        const { tools, resources, content } = await repertoire.load(first);
        tell({ tools, resources, content });
        break;
      }
      case "call": {
        const session = await repertoire.load(first);
        const { text, value } = await session.call(second, { text: "so and so" });
        tell({ text, structured: value });
        break;
      }
      case "stub":
        // What the convenience has no word for fails in the same way.
        await repertoire.lookup.getSkill({ skillId: first });
        break;
      case "repeat":
        // A search after the other, until whoever reads has enough.
        for (;;) {
          const started = performance.now();
          await repertoire.search("skill", { limit: 1 });
          tell({ seconds: (performance.now() - started) / 1000 });
          await sleep(10);
        }
      case "watch": {
        const watch = await repertoire.watch({ resumeToken: first });
        tell({ resume_token: watch.resumeToken });
        for await (const event of watch) {
          tell({
            sequence: Number(event.sequence),
            type: `EVENT_TYPE_${v1.EventType[event.type]}`,
            skill_id: event.skillId,
            version_number: event.versionNumber,
            resume_token: watch.resumeToken,
          });
        }
        break;
      }
      default:
        tell({ untyped: `no such command: ${command}` });
    }
  } finally {
    repertoire.close();
  }
}

try {
  const [command = "", ...given] = process.argv.slice(2);
  await run(command, ...given);
} catch (error) {
  if (!(error instanceof RepertoireError)) throw error;
  const { code, message, next, violations, retryAfter } = error;
  const kind = Object.entries(KINDS).flatMap(([name, Kind]) => (error instanceof Kind ? [name] : [])).join("");
  tell({ code, message, next, kind, status: Code[error.status], violations, retry_after: retryAfter });
  process.exitCode = 1;
}
