/** A connection to a server, and the four things that everybody does with it. */

import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { basename, resolve } from "node:path";
import { rootCertificates } from "node:tls";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { type Client as Calls, createClient, type Transport } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { isLocal, parse } from "./address.js";
import { interceptor, withTypedErrors } from "./calls.js";
import { refuse } from "./errors.js";
import { read } from "./folder.js";
import { Composition } from "./generated/repertoire/v1/composition_pb.js";
import type { EventType } from "./generated/repertoire/v1/event_pb.js";
import { Learning } from "./generated/repertoire/v1/learning_pb.js";
import { Lookup } from "./generated/repertoire/v1/lookup_pb.js";
import { type PublishSkillResponse, Registry } from "./generated/repertoire/v1/registry_pb.js";
import type { SearchFiltersSchema, SkillSummary } from "./generated/repertoire/v1/search_pb.js";
import { ToolHost } from "./generated/repertoire/v1/tool_host_pb.js";
import { Session } from "./session.js";
import { Watch } from "./watch.js";

const DEFAULT_SERVER = "http://127.0.0.1:50051";
// As the server has it: a skill of 16 MiB, and what is around it.
const MAX_MESSAGE_BYTES = 20 * 1024 * 1024;

/** What is not given comes from REPERTOIRE_TOKEN and REPERTOIRE_CA. */
export interface ConnectOptions {
  /** Goes with every call, never in clear to another machine unless that is allowed. */
  token?: string;
  /** A file of authorities in PEM to trust beside those that Node brings. */
  ca?: string;
  headers?: Record<string, string>;
  /** Milliseconds that a call may take, attempts and waits included. 30,000 unless it is given. */
  timeout?: number;
  allowTokenInClear?: boolean;
}

export interface PublishOptions {
  /** `source/author/slug`; without one `local/global/` and the name of the skill. */
  id?: string;
  changeSummary?: string;
  /** Refuse what the Agent Skills standard does not allow. */
  strict?: boolean;
  /** Make it the active version; true unless it is given. */
  activate?: boolean;
}

export interface SearchOptions {
  limit?: number;
  filters?: MessageInitShape<typeof SearchFiltersSchema>;
}

export interface WatchOptions {
  /** After this token instead of from now on. */
  resumeToken?: string;
  /** Only events of these skills, by id. */
  skills?: string[];
  types?: EventType[];
}

/**
 * A client of the server at `http://HOST:PORT`, `https://HOST` or `HOST:PORT`, the last in clear; without
 * an address at that of REPERTOIRE_SERVER. Connects with the first call.
 */
export function connect(server?: string, options: ConnectOptions = {}): Client {
  const text = server || process.env.REPERTOIRE_SERVER || DEFAULT_SERVER;
  const token = options.token || process.env.REPERTOIRE_TOKEN;
  const ca = options.ca || process.env.REPERTOIRE_CA;
  const timeout = options.timeout ?? 30_000;
  const url = parse(text);
  const isSecure = url.protocol === "https:";
  const headers = Object.entries(options.headers ?? {}).map(([name, value]): [string, string] => [name.toLowerCase(), value]);
  if (token) headers.push(["authorization", `Bearer ${token}`]);
  const hasSecret = headers.some(([name]) => name === "authorization");
  if (hasSecret && !isSecure && !isLocal(url) && !options.allowTokenInClear) {
    const message = `refusing to send a token over plain HTTP to ${text}`;
    throw refuse("INVALID_PARAMETER", message, ["Write https:// where the server has TLS"]);
  }
  const nodeOptions = isSecure && ca ? { ca: [...rootCertificates, authorities(ca)] } : {};
  // A watch notices that the other machine is gone.
  const alive = { pingIntervalMs: 30_000, pingTimeoutMs: 10_000, pingIdleConnection: false };
  const sessionManager = new Http2SessionManager(url.origin, alive, nodeOptions);
  const transport = createGrpcTransport({
    baseUrl: url.origin,
    nodeOptions,
    sessionManager,
    readMaxBytes: MAX_MESSAGE_BYTES,
    writeMaxBytes: MAX_MESSAGE_BYTES,
    interceptors: [interceptor(headers)],
  });
  return new Client(transport, timeout, () => sessionManager.abort());
}

function authorities(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    const next = ["REPERTOIRE_CA and `ca` name a file of certificates in PEM"];
    throw refuse("LOCAL_FILE_FAILED", (error as Error).message, next, error);
  }
}

/**
 * A connection to a server. The services of the contract are there as they are; their calls have the same
 * deadline, headers, attempts and errors as everything here.
 */
export class Client {
  readonly registry: Calls<typeof Registry>;
  readonly lookup: Calls<typeof Lookup>;
  readonly composition: Calls<typeof Composition>;
  readonly learning: Calls<typeof Learning>;
  readonly toolHost: Calls<typeof ToolHost>;

  /** Of a transport of the caller's own, such as one of a test. */
  constructor(transport: Transport, timeout: number, private readonly end: () => void = () => {}) {
    const limited: Transport = {
      // The time is that of all attempts together.
      unary: (method, signal, timeoutMs, header, input, values) =>
        transport.unary(method, signal, timeoutMs ?? timeout, header, input, values),
      stream: (...call) => transport.stream(...call),
    };
    this.registry = withTypedErrors(createClient(Registry, limited));
    this.lookup = withTypedErrors(createClient(Lookup, limited));
    this.composition = withTypedErrors(createClient(Composition, limited));
    this.learning = withTypedErrors(createClient(Learning, limited));
    this.toolHost = withTypedErrors(createClient(ToolHost, limited));
  }

  /**
   * Publishes the folder of a skill. Publishing the same bytes again gives the version that there is. Links,
   * what tools make and files of secrets are left out.
   */
  async publish(folder: string, { id, ...options }: PublishOptions = {}): Promise<PublishSkillResponse> {
    return await this.registry.publishSkill({
      ...options,
      skillId: id ?? "",
      files: await read(folder),
      folder: basename(resolve(folder)),
      // An attempt whose answer was lost is not a second write.
      idempotencyKey: randomUUID(),
    });
  }

  /**
   * Finds skills by words and by meaning, the best first. A skill is found within a second of its publish.
   * Facets, pages and how the query was understood: `lookup.search`.
   */
  async search(query: string, options: SearchOptions = {}): Promise<SkillSummary[]> {
    return (await this.lookup.search({ query, ...options })).results;
  }

  /** Loads a skill, by id or short name, into a session: a new one, or the one of this id. */
  async load(skill: string, { session = "" } = {}): Promise<Session> {
    return new Session(this, await this.lookup.loadSkill({ skillId: skill, sessionId: session }));
  }

  /** What happens to skills, from now on or after a token. Nothing is missed once this resolves. */
  async watch({ resumeToken = "", skills = [], types = [] }: WatchOptions = {}): Promise<Watch> {
    return await Watch.begin(this, { resumeToken, skillIds: skills, types });
  }

  /** Closes the connection; calls in work are cancelled. */
  close(): void {
    this.end();
  }
}
