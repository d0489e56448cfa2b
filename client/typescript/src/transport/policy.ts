import { Code, type StreamResponse, type Transport } from "@connectrpc/connect";

import { GradewireError } from "../errors.js";
import { Retries } from "./retries.js";

/** Options for all calls over a connection. */
export interface CallPolicy {
  /** Token sent with each call, as `authorization: Bearer TOKEN`. */
  readonly token?: string | undefined;
  /**
   * Deadline of a unary call in milliseconds, including retries and waits; 30 000 by default, 0 means no limit. A
   * call's `timeoutMs` overrides this. Streams use `stallMs` instead.
   */
  readonly deadlineMs?: number | undefined;
}

const DEADLINE_MS = 30_000;
/** Maximum wait of a timer in Node and browsers. A timer with a longer wait would fire at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;
const BROKEN = new Set([
  "ECONNRESET",
  "EPIPE",
  "ERR_HTTP2_GOAWAY_SESSION",
  "ERR_HTTP2_INVALID_SESSION",
  "ERR_HTTP2_INVALID_STREAM",
  "ERR_STREAM_DESTROYED",
  "ERR_STREAM_PREMATURE_CLOSE",
]);

/**
 * Returns a transport that adds a token and a deadline to calls, retries unary calls, and throws `GradewireError`.
 *
 * @param closed Signal that ends all current and later calls.
 */
export function withPolicy(inner: Transport, policy: CallPolicy, closed?: AbortSignal): Transport {
  return {
    async unary(method, given, timeoutMs, header, input, contextValues) {
      const signal = anyOf(given, closed);
      const givenMs = timeoutMs ?? policy.deadlineMs ?? DEADLINE_MS;
      const endMs = givenMs > 0 ? performance.now() + givenMs : Infinity;
      const leftMs = (): number => endMs - performance.now();
      const retries = new Retries(leftMs);
      for (;;) {
        try {
          const attemptMs = endMs === Infinity ? 0 : Math.min(MAX_TIMER_MS, Math.max(1, Math.ceil(leftMs())));
          return await inner.unary(method, signal, attemptMs, headersOf(header, policy), input, contextValues);
        } catch (error) {
          await retries.waitAfter(translated(error, signal), signal);
        }
      }
    },
    async stream(method, given, timeoutMs, header, input, contextValues) {
      const signal = anyOf(given, closed);
      try {
        const reply = await inner.stream(
          method,
          signal,
          timeoutMs && Math.min(MAX_TIMER_MS, timeoutMs),
          headersOf(header, policy),
          input,
          contextValues,
        );
        return { ...reply, message: translatedStream(reply.message, signal) } as StreamResponse<
          typeof method.input,
          typeof method.output
        >;
      } catch (error) {
        throw translated(error, signal);
      }
    },
  };
}

function anyOf(...signals: (AbortSignal | undefined)[]): AbortSignal | undefined {
  const present = signals.filter((signal) => signal !== undefined);
  return present.length > 0 ? AbortSignal.any(present) : undefined;
}

function headersOf(given: HeadersInit | undefined, policy: CallPolicy): Headers {
  const headers = new Headers(given);
  if (policy.token !== undefined && !headers.has("authorization")) {
    headers.set("authorization", `Bearer ${policy.token}`);
  }
  return headers;
}

function translated(reason: unknown, signal: AbortSignal | undefined): GradewireError {
  const error = GradewireError.from(reason);
  if (signal?.aborted || error.requestId !== undefined) {
    return error;
  }
  if (error.code === Code.Aborted || brokenConnection(error)) {
    return new GradewireError(`the connection broke: ${error.rawMessage}`, Code.Unavailable, { cause: reason });
  }
  // The caller did not cancel the call. A server with too many calls drops some without reading them.
  return error.code === Code.Canceled ? error.with({ mayPass: true }) : error;
}

/** Returns true if an error's cause is a broken connection. connect-node reports some of these as internal errors. */
function brokenConnection(error: Error): boolean {
  for (let cause: unknown = error; cause instanceof Error; cause = cause.cause) {
    if ("code" in cause && typeof cause.code === "string" && BROKEN.has(cause.code)) {
      return true;
    }
  }
  return false;
}

async function* translatedStream<T>(messages: AsyncIterable<T>, signal: AbortSignal | undefined): AsyncGenerator<T> {
  try {
    yield* messages;
  } catch (error) {
    throw translated(error, signal);
  }
}
