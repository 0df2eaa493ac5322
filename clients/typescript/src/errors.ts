/** What a call that failed comes to: a stable code, a sentence, and what to do next. */

import { Code, ConnectError } from "@connectrpc/connect";
import { BadRequestSchema, ErrorInfoSchema, HelpSchema, RetryInfoSchema } from "./generated/google/rpc/error_details_pb.js";

export { Code };

/** One thing that is wrong with a request: a field, or a file and line of a skill. */
export interface Violation {
  field: string;
  message: string;
}

interface Told {
  code: string;
  message: string;
  status: Code;
  next?: string[];
  violations?: Violation[];
  retryAfter?: number;
  facts?: Record<string, string>;
  isNamed?: boolean;
  cause?: unknown;
}

/** A call that failed. Act on `code`, never on the message. */
export class RepertoireError extends Error {
  override name = "RepertoireError";
  /** Stable code, such as `SKILL_NOT_FOUND`. */
  readonly code: string;
  /** Status of gRPC. */
  readonly status: Code;
  /** What to do next, most useful first. */
  readonly next: string[];
  /** What is wrong with the request. */
  readonly violations: Violation[];
  /** Milliseconds after which it may be tried again; undefined: the server does not say. */
  readonly retryAfter: number | undefined;
  /** Facts such as `skill_id`. */
  readonly facts: Record<string, string>;
  /** It has its code from the server; others come from a proxy, or from this side. */
  readonly isNamed: boolean;

  constructor({ code, message, status, next, violations, retryAfter, facts, isNamed, cause }: Told) {
    super(message, { cause });
    this.code = code;
    this.status = status;
    this.next = next ?? [];
    this.violations = violations ?? [];
    this.retryAfter = retryAfter;
    this.facts = facts ?? {};
    this.isNamed = isNamed ?? true;
  }

  override toString(): string {
    return [`${this.code}: ${this.message}`, ...this.next.map((step) => `  next: ${step}`)].join("\n");
  }
}

/** What was named is not there. */
export class NotFound extends RepertoireError {
  override name = "NotFound";
}
/** The request cannot be done as it is; the same again is refused again. */
export class Refused extends RepertoireError {
  override name = "Refused";
}
/** It is at odds with what is there, or with what somebody else does. */
export class Conflict extends RepertoireError {
  override name = "Conflict";
}
/** Whoever calls may not do it. */
export class Denied extends RepertoireError {
  override name = "Denied";
}
/** The server, or what it needs, is not there at present. */
export class Unavailable extends RepertoireError {
  override name = "Unavailable";
}

// Codes of what is there already, or changed meanwhile. Their statuses say less.
const CONFLICTS = new Set([
  "CONFLICT_DETECTED",
  "IDEMPOTENCY_KEY_REUSED",
  "SKILL_ALREADY_INSTALLED",
  "SOURCE_EXISTS",
  "SUBMISSION_REVIEWED",
  "SYNC_IN_PROGRESS",
  "VERSION_CONFLICT",
  "WRITE_CONTENTION",
]);

const KINDS = new Map<Code, typeof RepertoireError>([
  [Code.NotFound, NotFound],
  [Code.InvalidArgument, Refused],
  [Code.FailedPrecondition, Refused],
  [Code.OutOfRange, Refused],
  [Code.Aborted, Conflict],
  [Code.AlreadyExists, Conflict],
  [Code.PermissionDenied, Denied],
  [Code.Unauthenticated, Denied],
  [Code.Unavailable, Unavailable],
  [Code.ResourceExhausted, Unavailable],
  [Code.DeadlineExceeded, Unavailable],
]);

// What a failure is called that no server has named.
const UNNAMED = new Map<Code, string>([
  [Code.InvalidArgument, "INVALID_PARAMETER"],
  [Code.OutOfRange, "INVALID_PARAMETER"],
  [Code.DeadlineExceeded, "TIMEOUT"],
  [Code.Canceled, "TIMEOUT"],
  [Code.ResourceExhausted, "OVERLOADED"],
  [Code.Unavailable, "SERVER_UNREACHABLE"],
]);
const LOOK = "Check that the server is running and that its address is right";

/** A connection that could not be made is none of the server's faults, whatever the library calls it. */
function isUnreached(error: ConnectError): boolean {
  for (let cause: unknown = error.cause; cause instanceof Error; cause = cause.cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (code && /^(E[A-Z]+|ERR_(SSL|TLS|HTTP2)_\w+|[A-Z_]*CERT[A-Z_]*)$/.test(code)) return true;
  }
  return false;
}

/** The connection ended under the call: Node has its streams end with the reset code of a caller who cancels. */
function isCutOff(error: ConnectError): boolean {
  return error.code === Code.Canceled && error.rawMessage.startsWith("http/2 stream closed");
}

/** The typed error of a failed call. */
export function ofCall(cause: unknown): RepertoireError {
  if (cause instanceof RepertoireError) return cause;
  const error = ConnectError.from(cause);
  const [info] = error.findDetails(ErrorInfoSchema);
  const [retry] = error.findDetails(RetryInfoSchema);
  const delay = retry?.retryDelay;
  let status = error.code;
  const hasFailed = status === Code.Internal || status === Code.Unknown;
  if (!info && ((hasFailed && isUnreached(error)) || isCutOff(error))) status = Code.Unavailable;
  const code = info?.reason ?? UNNAMED.get(status) ?? "INTERNAL_ERROR";
  let next = error.findDetails(HelpSchema).flatMap(({ links }) => links.map(({ description }) => description));
  if (code === "SERVER_UNREACHABLE" && next.length === 0) next = [LOOK];
  const Kind = CONFLICTS.has(code) ? Conflict : (KINDS.get(status) ?? RepertoireError);
  return new Kind({
    code,
    status,
    next,
    message: error.rawMessage,
    violations: error
      .findDetails(BadRequestSchema)
      .flatMap(({ fieldViolations }) => fieldViolations.map(({ field, description }) => ({ field, message: description }))),
    retryAfter: delay && Number(delay.seconds) * 1000 + delay.nanos / 1e6,
    facts: info?.metadata,
    isNamed: info !== undefined,
    cause: error,
  });
}

/** What the client itself refuses before it calls. */
export function refuse(code: string, message: string, next: string[] = [], cause?: unknown): Refused {
  return new Refused({ code, message, status: Code.InvalidArgument, next, cause });
}
