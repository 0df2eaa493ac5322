/** The log of changes, followed across restarts. */

import { setTimeout as sleep } from "node:timers/promises";
import { Code } from "@connectrpc/connect";
import { ATTEMPTS, NEVER_BEGAN, waitBefore } from "./calls.js";
import type { Client } from "./client.js";
import { ofCall, type RepertoireError } from "./errors.js";
import type { Event } from "./generated/repertoire/v1/event_pb.js";
import type { EventType } from "./generated/repertoire/v1/event_pb.js";
import type { WatchResponse } from "./generated/repertoire/v1/registry_pb.js";

// How a connection ends that breaks, where no server says so. A proxy words it in its own way.
const BROKEN = new Set([
  Code.Unavailable,
  Code.Internal,
  Code.Unknown,
  Code.Canceled,
  Code.Aborted,
  Code.DeadlineExceeded,
]);

/** Whether it is the connection that failed, and not the watch. */
function isBroken(error: RepertoireError): boolean {
  if (error.isNamed) return NEVER_BEGAN.has(error.code) || error.status === Code.Unavailable;
  return BROKEN.has(error.status);
}

export interface WatchRequest {
  resumeToken: string;
  skillIds: string[];
  types: EventType[];
}

/**
 * Events as they happen, without an end; each one once. Where the connection breaks or the server
 * restarts, it goes on after the last event that it handed out. It ends with the error of a server that
 * cannot go on from there: then list the skills again, and watch from the token of the list.
 */
export class Watch implements AsyncIterable<Event> {
  /** Where to go on after the last event that was handed out. Keep it to go on in another process. */
  resumeToken: string;
  private readonly end = new AbortController();
  private stream: AsyncIterator<WatchResponse> | undefined;

  private constructor(
    private readonly client: Client,
    private readonly request: WatchRequest,
  ) {
    this.resumeToken = request.resumeToken;
  }

  /** Begins to watch; nothing is missed from then on. */
  static async begin(client: Client, request: WatchRequest): Promise<Watch> {
    const watch = new Watch(client, request);
    for (let failed = 1; ; failed++) {
      try {
        await watch.open();
        return watch;
      } catch (cause) {
        const error = ofCall(cause);
        if (failed === ATTEMPTS || !isBroken(error)) throw error;
        await sleep(waitBefore(failed, error.retryAfter));
      }
    }
  }

  private async open(): Promise<AsyncIterator<WatchResponse>> {
    const { resumeToken } = this;
    const answers = this.client.registry.watch({ ...this.request, resumeToken }, { signal: this.end.signal, timeoutMs: 0 });
    const stream = answers[Symbol.asyncIterator]();
    // The first answer holds no event.
    const first = await stream.next();
    if (!first.done) {
      this.resumeToken = first.value.resumeToken;
      this.stream = stream;
    }
    return stream;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Event, void, undefined> {
    let failed = 0;
    try {
      while (!this.end.signal.aborted) {
        let retryAfter: number | undefined;
        try {
          const stream = this.stream ?? (await this.open());
          for (let next = await stream.next(); !next.done; next = await stream.next()) {
            failed = 0;
            this.resumeToken = next.value.resumeToken;
            if (next.value.event) yield next.value.event;
          }
          // A proxy ended it without a word.
        } catch (cause) {
          if (this.end.signal.aborted) return;
          const error = ofCall(cause);
          if (!isBroken(error)) throw error;
          retryAfter = error.retryAfter;
        }
        this.stream = undefined;
        failed++;
        await sleep(waitBefore(failed, retryAfter), undefined, { signal: this.end.signal }).catch(() => {});
      }
    } finally {
      this.close();
    }
  }

  /** Ends it; whoever waits for an event gets none. */
  close(): void {
    this.end.abort();
  }
}
