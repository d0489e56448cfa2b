import { Code, ConnectError } from "@connectrpc/connect";

/** Details of a failure, besides code and message. */
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
 * A call that failed as a whole. The failure of a single item is in its result, as its `status`.
 *
 * As a `ConnectError` it also has `code`, `rawMessage` and `metadata`.
 */
export class GradewireError extends ConnectError {
  /** The field at fault, `metrics[0].smile.preset`; undefined without one. */
  readonly field: string | undefined;
  /** Milliseconds after which the server wants a retry; undefined if it did not say. */
  readonly retryAfterMs: number | undefined;
  /** Id in the server's request log; undefined without an answer of the server. */
  readonly requestId: string | undefined;
  /** True if the same call may succeed later. */
  readonly mayPass: boolean;

  constructor(message: string, code: Code, facts: ErrorFacts = {}, metadata?: HeadersInit) {
    super(message, code, metadata, undefined, facts.cause);
    this.field = facts.field;
    this.retryAfterMs = facts.retryAfterMs;
    this.requestId = facts.requestId;
    // A message that is too large is RESOURCE_EXHAUSTED as well, but without a time for a retry.
    const full = code === Code.ResourceExhausted && facts.retryAfterMs !== undefined;
    this.mayPass = facts.mayPass ?? (code === Code.Unavailable || full);
  }

  /** Returns the GradewireError for anything that a call threw. */
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

  /** Returns the same error with other details and an addition to its message. */
  with(facts: ErrorFacts, said = ""): GradewireError {
    const { field, retryAfterMs, requestId, mayPass, cause } = this;
    const all = { field, retryAfterMs, requestId, mayPass, cause, ...facts };
    return new GradewireError(this.rawMessage + said, this.code, all, this.metadata);
  }

  // ConnectError's own check compares names, so it would accept each ConnectError.
  static override [Symbol.hasInstance](value: unknown): boolean {
    return typeof value === "object" && value !== null && GradewireError.prototype.isPrototypeOf(value);
  }
}

function numberOf(text: string | null): number | undefined {
  const value = text === null ? Number.NaN : Number(text);
  return Number.isFinite(value) && value >= 0 ? value : undefined;
}
