import { Code, ConnectError } from "@connectrpc/connect";

/** Details of a failure, in addition to its code and message. */
export interface ErrorFacts {
  readonly field?: string | undefined;
  readonly retryAfterMs?: number | undefined;
  readonly requestId?: string | undefined;
  readonly mayPass?: boolean | undefined;
  readonly cause?: unknown;
}

const RETRY_AFTER = "grpc-retry-pushback-ms";
const REQUEST_ID = "x-request-id";
const FIELD = /^([a-z_]\w*(?:\[\d+\])?(?:\.[a-z_]\w*(?:\[\d+\])?)*): /;

/**
 * The error of a call that failed as a whole. If only one item fails, its result has a `status` instead.
 *
 * The error is a `ConnectError`, so it also has `code`, `rawMessage` and `metadata`.
 */
export class GradewireError extends ConnectError {
  /** The request's wrong field, such as `metrics[0].smile.preset`; undefined if no field is wrong. */
  readonly field: string | undefined;
  /** Milliseconds to wait before a retry; undefined if the server did not name a time. */
  readonly retryAfterMs: number | undefined;
  /** The request's id in the server's log; undefined if the server did not answer. */
  readonly requestId: string | undefined;
  /** True if the same call may succeed later. */
  readonly mayPass: boolean;

  constructor(message: string, code: Code, facts: ErrorFacts = {}, metadata?: HeadersInit) {
    super(message, code, metadata, undefined, facts.cause);
    this.field = facts.field;
    this.retryAfterMs = facts.retryAfterMs;
    this.requestId = facts.requestId;
    // A message that is too large also fails with RESOURCE_EXHAUSTED, but names no time for a retry.
    const full = code === Code.ResourceExhausted && facts.retryAfterMs !== undefined;
    this.mayPass = facts.mayPass ?? (code === Code.Unavailable || full);
  }

  /** Converts anything that a call threw into a GradewireError. */
  static override from(reason: unknown): GradewireError {
    if (reason instanceof GradewireError) {
      return reason;
    }
    const error = ConnectError.from(reason);
    const facts = {
      field: error.code === Code.InvalidArgument ? FIELD.exec(error.rawMessage)?.[1] : undefined,
      retryAfterMs: numberOf(error.metadata.get(RETRY_AFTER)),
      requestId: error.metadata.get(REQUEST_ID) ?? undefined,
      cause: reason,
    };
    return new GradewireError(error.rawMessage, error.code, facts, error.metadata);
  }

  /** Returns a copy of the error with these details, and with `said` added to the message. */
  with(facts: ErrorFacts, said = ""): GradewireError {
    const { field, retryAfterMs, requestId, mayPass, cause } = this;
    const all = { field, retryAfterMs, requestId, mayPass, cause, ...facts };
    return new GradewireError(this.rawMessage + said, this.code, all, this.metadata);
  }

  // ConnectError's check compares only names, so it would accept any ConnectError.
  static override [Symbol.hasInstance](value: unknown): boolean {
    return typeof value === "object" && value !== null && GradewireError.prototype.isPrototypeOf(value);
  }
}

function numberOf(text: string | null): number | undefined {
  const value = text === null ? Number.NaN : Number(text);
  return Number.isFinite(value) && value >= 0 ? value : undefined;
}
