/**
 * Client of Repertoire, the server of agent skills.
 *
 *     import { connect } from "@repertoire/client";
 *
 *     const repertoire = connect("http://127.0.0.1:50051");
 *     const [found] = await repertoire.search("how long a text is");
 *
 * Messages of the contract are in `@repertoire/client/v1`, and here as `v1`.
 */

// What calls take: a message with what is not its default.
export type { JsonObject, MessageInitShape } from "@bufbuild/protobuf";
export { connect, Client, type ConnectOptions, type PublishOptions, type SearchOptions, type WatchOptions } from "./client.js";
export {
  Code,
  Conflict,
  Denied,
  NotFound,
  Refused,
  RepertoireError,
  Unavailable,
  type Violation,
} from "./errors.js";
export { type Answer, Session } from "./session.js";
export { Watch } from "./watch.js";
export * as v1 from "./v1.js";
