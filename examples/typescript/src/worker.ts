/** A worker that serves the skill text_stats. */

import { PassThrough } from "node:stream";
import { Code, connect, type MessageInitShape, RepertoireError, v1 } from "@repertoire/client";
import { address } from "./address.js";

const WORD = /[a-z]+(?:'[a-z]+)*/g;
const SAMPLE = "To be, or not to be: that is the question.";

/** What a caller did wrong, in words for the caller. */
class Refused extends Error {
  constructor(
    readonly field: string,
    message: string,
    readonly suggestion: string,
  ) {
    super(message);
  }
}

type Arguments = Record<string, unknown>;
type Result = { content: string; structured?: { words: number; top: { word: string; count: number }[] } };

function countWords(args: Arguments): Result {
  // The server has checked the arguments against the schema of the skill and filled in
  // what was left out.
  const { text, top } = args as { text: string; top: number };
  if (top < 1 || top > 100) {
    throw new Refused("top", "`top` is from 1 to 100", "Ask for between 1 and 100 words");
  }
  const words = text.toLowerCase().match(WORD) ?? [];
  const counts = new Map<string, number>();
  for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
  const first = [...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).slice(0, top);
  const listed = first.map(([word, count]) => `${word} ${count}`).join(", ");
  return {
    content: `${words.length} words; most frequent: ${listed}`,
    structured: { words: words.length, top: first.map(([word, count]) => ({ word, count })) },
  };
}

const METHODS: Record<string, (args: Arguments) => Result | Promise<Result>> = {
  count_words: countWords,
  sample_counts: () => ({ content: `${SAMPLE}\n${countWords({ text: SAMPLE, top: 3 }).content}\n` }),
  load_core: () => ({ content: "Words are counted by a worker written in TypeScript." }),
};

const token = process.env.WORKER_TOKEN;
if (!token) throw new Error("WORKER_TOKEN is not set");
const repertoire = connect(address(), { token });
const outbox = new PassThrough({ objectMode: true });
const send = (message: MessageInitShape<typeof v1.AttachRequestSchema>["message"]) => outbox.write({ message });
let beat: NodeJS.Timeout | undefined;

send({
  case: "hello",
  value: {
    name: `typescript-${process.pid}`,
    skills: [{ skillId: "examples/text/text_stats", methods: Object.keys(METHODS) }],
    concurrency: 4,
  },
});

async function serve(): Promise<void> {
  for await (const { message } of repertoire.toolHost.attach(outbox)) {
    switch (message.case) {
      case "welcome": {
        console.log(`attached as ${message.value.workerId}`);
        const { seconds, nanos } = message.value.heartbeat ?? { seconds: 10n, nanos: 0 };
        beat = setInterval(() => send({ case: "heartbeat", value: {} }), Number(seconds) * 1000 + nanos / 1e6);
        break;
      }
      case "invocation":
        void invoke(message.value);
        break;
      case "notice":
        console.error(`dropped: ${message.value.message}`);
        break;
      // A `cancel` could stop a tool that takes long. The outcome is due all the same: it
      // frees the slot.
    }
  }
}

async function invoke({ invocationId, method, arguments: args }: v1.Invocation): Promise<void> {
  try {
    const result = await METHODS[method]!(args ?? {});
    send({ case: "outcome", value: { invocationId, outcome: { case: "result", value: result } } });
  } catch (error) {
    send({ case: "outcome", value: { invocationId, outcome: { case: "error", value: failure(method, error) } } });
  }
}

function failure(method: string, error: unknown) {
  if (error instanceof Refused) {
    const { field, message, suggestion } = error;
    const kind = v1.ToolErrorKind.INVALID_ARGUMENT;
    return { kind, message, field, suggestions: [suggestion] };
  }
  // For the log; a caller learns nothing of this process.
  console.error(`${method}: ${error}`);
  const kind = v1.ToolErrorKind.UNSPECIFIED;
  return { kind, message: "The worker could not do it", field: "", suggestions: [] };
}

// No more calls, please; the server ends the stream when those in work are answered.
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.on(signal, () => send({ case: "drain", value: {} }));
}
try {
  await serve();
} catch (error) {
  if (!(error instanceof RepertoireError)) throw error;
  // Whoever supervises this process starts it again.
  console.error(`${Code[error.status]}: ${error.message}`);
  process.exitCode = 1;
} finally {
  clearInterval(beat);
  outbox.end();
  repertoire.close();
}
