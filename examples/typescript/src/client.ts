/** Publishes the skill text_stats, finds it, loads it, and calls its tool. */

import { readdirSync, readFileSync } from "node:fs";
import { setTimeout } from "node:timers/promises";
import { credentials, type ServiceError } from "@grpc/grpc-js";
import { ErrorInfo, Help, Status } from "../generated/google/rpc/error.js";
import { ComposeSkillsRequest, type ComposeSkillsResponse, CompositionClient } from "../generated/repertoire/v1/composition.js";
import {
  CallToolRequest,
  type CallToolResponse,
  LoadSkillDetailRequest,
  type LoadSkillDetailResponse,
  LoadSkillRequest,
  type LoadSkillResponse,
  LookupClient,
} from "../generated/repertoire/v1/lookup.js";
import { PublishSkillRequest, type PublishSkillResponse, RegistryClient } from "../generated/repertoire/v1/registry.js";
import { SearchRequest, type SearchResponse } from "../generated/repertoire/v1/search.js";

const SKILL = new URL("../../../skills/text_stats/", import.meta.url);
const TEXT = "The quick fox. The lazy dog! Don't the fox and the dog agree?";

/** A call of grpc-js, which answers through a callback, as a promise. */
function answer<Response>(
  start: (done: (error: ServiceError | null, response: Response) => void) => unknown,
): Promise<Response> {
  return new Promise((resolve, reject) => {
    start((error, response) => (error ? reject(error) : resolve(response)));
  });
}

/** Prints a refusal: a code for programs, a sentence, and what to do next. */
function explain(error: ServiceError): void {
  const [bytes] = error.metadata.get("grpc-status-details-bin");
  const { details } = Status.decode(bytes as Buffer);
  const detail = (name: string) => details.find(({ typeUrl }) => typeUrl.endsWith(`/google.rpc.${name}`))?.value;
  const { reason } = ErrorInfo.decode(detail("ErrorInfo") ?? new Uint8Array());
  console.log(`refused: ${reason}: ${error.details}`);
  for (const { description } of Help.decode(detail("Help") ?? new Uint8Array()).links) {
    console.log(`  next: ${description}`);
  }
}

// TLS, where REPERTOIRE_CA names the authorities to trust.
const authorities = process.env.REPERTOIRE_CA;
const security = authorities ? credentials.createSsl(readFileSync(authorities)) : credentials.createInsecure();
const address = process.env.REPERTOIRE_ADDRESS ?? "127.0.0.1:50051";
const registry = new RegistryClient(address, security);
const lookup = new LookupClient(address, security);
const composition = new CompositionClient(address, security);

// Publishing the same bytes again gives the version that there is.
const files = readdirSync(SKILL).map((path) => ({ path, content: readFileSync(new URL(path, SKILL)) }));
const published = await answer<PublishSkillResponse>((done) =>
  registry.publishSkill(PublishSkillRequest.fromPartial({ skillId: "examples/text/text_stats", files }), done),
);
console.log(`published ${published.skillId} ${published.version?.semanticVersion}`);

// What was published is found within a second.
let found: string[] = [];
for (let attempt = 0; attempt < 20; attempt++) {
  const { results } = await answer<SearchResponse>((done) =>
    lookup.search(SearchRequest.fromPartial({ query: "how long a text is, and its most frequent words", limit: 1 }), done),
  );
  found = results.map(({ id }) => id);
  if (found[0] === published.skillId) break;
  await setTimeout(100);
}
console.log(`found ${found.join(", ")}`);

const together = await answer<ComposeSkillsResponse>((done) =>
  composition.composeSkills(ComposeSkillsRequest.fromPartial({ skills: ["text_stats", "write_sql"] }), done),
);
console.log(
  `composed: allowed ${together.allowedTools.join(", ")}; forbidden ${together.forbiddenTools.join(", ")}`,
);

// The session is the server's; its id goes with every call.
const loaded = await answer<LoadSkillResponse>((done) =>
  lookup.loadSkill(LoadSkillRequest.fromPartial({ skillId: "text_stats" }), done),
);
const { sessionId } = loaded;
console.log(`loaded: tools ${loaded.tools.join(", ")}; resources ${loaded.resources.join(", ")}`);
console.log(loaded.content.split("\n").find((line) => line.startsWith("Words are counted by")));

const tool = { sessionId, name: "text_count_words" };
const called = await answer<CallToolResponse>((done) =>
  lookup.callTool(CallToolRequest.fromPartial({ ...tool, arguments: { text: TEXT, top: 3 } }), done),
);
console.log(`called: ${called.content} (${called.structured?.words})`);

const sample = await answer<LoadSkillDetailResponse>((done) =>
  lookup.loadSkillDetail(LoadSkillDetailRequest.fromPartial({ skillId: "text_stats", resource: "samples", sessionId }), done),
);
console.log(`read: ${sample.content.split("\n")[1]}`);

try {
  // The worker refuses this one; what it says comes as details of the status.
  await answer<CallToolResponse>((done) =>
  lookup.callTool(CallToolRequest.fromPartial({ ...tool, arguments: { text: TEXT, top: 0 } }), done),
);
} catch (error) {
  explain(error as ServiceError);
}
