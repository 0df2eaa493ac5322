/** What all calls have in common: headers, typed errors, and trying again where that is safe. */

import { setTimeout as sleep } from "node:timers/promises";
import { MethodOptions_IdempotencyLevel as Level } from "@bufbuild/protobuf/wkt";
import type { DescMethod } from "@bufbuild/protobuf";
import { Code, type Interceptor } from "@connectrpc/connect";
import { ofCall, type RepertoireError } from "./errors.js";

export const ATTEMPTS = 7;
// Milliseconds: the first wait is up to this long, each further one up to twice as long.
const FIRST_WAIT = 250;
const LONGEST_WAIT = 5_000;

/** The call was refused before anything was done, whatever it was. */
export const NEVER_BEGAN = new Set(["OVERLOADED", "TOOL_QUOTA"]);

/**
 * Milliseconds to wait before another attempt; `failed` counts those that failed. Full jitter: clients
 * that lost their server together do not come back together.
 */
export function waitBefore(failed: number, retryAfter = 0): number {
  return retryAfter + Math.random() * Math.min(LONGEST_WAIT, FIRST_WAIT * 2 ** Math.min(failed - 1, 16));
}

/** The contract says of each method whether it may be done twice. */
function isSafe(method: DescMethod, error: RepertoireError): boolean {
  // One that nobody has named is of this side: a message that is too large stays so.
  if (NEVER_BEGAN.has(error.code)) return error.isNamed;
  const mayRepeat = method.idempotency !== Level.IDEMPOTENCY_UNKNOWN;
  // The tool may have done its work.
  if (error.code === "TOOL_UNAVAILABLE") return error.retryAfter !== undefined && mayRepeat;
  return (error.status === Code.Unavailable || error.status === Code.Aborted) && mayRepeat;
}

/** Answers of a stream, whose errors are typed. */
async function* typed<T>(answers: AsyncIterable<T>): AsyncIterable<T> {
  try {
    yield* answers;
  } catch (error) {
    throw ofCall(error);
  }
}

/** Errors are converted outside of the library, which makes its own of all that an interceptor throws. */
export function interceptor(headers: [string, string][]): Interceptor {
  return (next) => async (request) => {
    for (const [name, value] of headers) request.header.set(name, value);
    // A stream is never begun again: `Client.watch` does that.
    if (request.stream) return await next(request);
    for (let failed = 1; ; failed++) {
      try {
        return await next(request);
      } catch (cause) {
        const error = ofCall(cause);
        const wait = waitBefore(failed, error.retryAfter);
        // It is aborted when the time of all attempts together has passed.
        const isLast = failed === ATTEMPTS || request.signal.aborted;
        if (isLast || !isSafe(request.method, error)) throw cause;
        await sleep(wait, undefined, { signal: request.signal }).catch(() => Promise.reject(cause));
      }
    }
  };
}

type Method = (...arguments_: never[]) => unknown;

/** The calls of a service, with typed errors. */
export function withTypedErrors<Service extends object>(service: Service): Service {
  const calls = Object.entries(service).map(([name, call]: [string, Method]) => {
    const wrapped = (...given: never[]) => {
      const answer = call(...given);
      if (answer instanceof Promise) return answer.catch((error: unknown) => Promise.reject(ofCall(error)));
      return typed(answer as AsyncIterable<unknown>);
    };
    return [name, wrapped];
  });
  return Object.fromEntries(calls) as Service;
}
