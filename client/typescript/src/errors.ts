import { Code, ConnectError } from "@connectrpc/connect";

/** What is known of a failure beside its code and message. */
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
 * A call that failed as a whole. What fails of one item alone stands in its result, as its `status`.
 *
 * It is a `ConnectError`, so `code`, `rawMessage` and `metadata` are there too.
 */
export class GradewireError extends ConnectError {
  /** What is at fault, `metrics[0].smile.preset`; undefined where nothing of the request is. */
  readonly field: string | undefined;
  /** Milliseconds after which the server asks to come back; undefined where it did not say. */
  readonly retryAfterMs: number | undefined;
  /** Stands in the server's request log; undefined where no server answered. */
  readonly requestId: string | undefined;
  /** Whether the same call may go well later without anything being changed. */
  readonly mayPass: boolean;

  constructor(message: string, code: Code, facts: ErrorFacts = {}, metadata?: HeadersInit) {
    super(message, code, metadata, undefined, facts.cause);
    this.field = facts.field;
    this.retryAfterMs = facts.retryAfterMs;
    this.requestId = facts.requestId;
    // What is too large is RESOURCE_EXHAUSTED as well, and then no time to come back is given.
    const full = code === Code.ResourceExhausted && facts.retryAfterMs !== undefined;
    this.mayPass = facts.mayPass ?? (code === Code.Unavailable || full);
  }

  /** The error behind whatever a call threw. */
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

  /** The same error, with other facts and more to say. */
  with(facts: ErrorFacts, said = ""): GradewireError {
    const { field, retryAfterMs, requestId, mayPass, cause } = this;
    const all = { field, retryAfterMs, requestId, mayPass, cause, ...facts };
    return new GradewireError(this.rawMessage + said, this.code, all, this.metadata);
  }

  // ConnectError's own check looks at names and would take each ConnectError for one of these.
  static override [Symbol.hasInstance](value: unknown): boolean {
    return typeof value === "object" && value !== null && GradewireError.prototype.isPrototypeOf(value);
  }
}

function numberOf(text: string | null): number | undefined {
  const value = text === null ? Number.NaN : Number(text);
  return Number.isFinite(value) && value >= 0 ? value : undefined;
}
