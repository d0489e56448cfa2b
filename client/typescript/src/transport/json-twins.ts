import { create, type DescMessage, fromJson, type JsonValue, type MessageInitShape, toJson } from "@bufbuild/protobuf";
import { Code, type Transport } from "@connectrpc/connect";
import { codeFromString } from "@connectrpc/connect/protocol-connect";

import { GradewireError } from "../errors.js";

/** The body of a failed call (RFC 9457). */
interface Problem {
  readonly detail?: string;
  readonly code?: string;
  readonly field?: string;
  readonly requestId?: string;
  readonly retryAfterS?: number;
}

const READING = { ignoreUnknownFields: true };

/**
 * Returns a transport that calls the HTTP API's JSON twins with `fetch`, which works in browsers.
 *
 * Streams of requests fail with the code `Unimplemented`: the server reads more requests only while you consume
 * results, but browsers send the whole body first.
 *
 * @param baseUrl `https://host:port`. In a web page, an empty string means the server that delivered the page.
 */
export function jsonTwinTransport(baseUrl: string, fetching: typeof fetch): Transport {
  const base = baseUrl.replace(/\/+$/, "");
  return {
    async unary(method, signal, timeoutMs, header, input) {
      const call = new TwinCall(`${base}/${method.parent.typeName}/${method.name}`, signal, timeoutMs, fetching);
      return call.told(async () => {
        const response = await call.send(header, bodyOf(method.input, input));
        const message = fromJson(method.output, (await response.json()) as JsonValue, READING);
        const trailer = new Headers();
        return { stream: false, service: method.parent, method, header: response.headers, trailer, message };
      });
    },
    async stream(method, signal, timeoutMs, header, input) {
      if (method.methodKind !== "server_streaming") {
        const message = `${method.name} needs a stream of requests, which fetch cannot send: call the unary method`;
        throw new GradewireError(message, Code.Unimplemented);
      }
      const call = new TwinCall(`${base}/${method.parent.typeName}/${method.name}`, signal, timeoutMs, fetching);
      const response = await call.told(async () => {
        for await (const first of input) {
          return await call.send(header, bodyOf(method.input, first));
        }
        throw new GradewireError(`${method.name} needs a request`, Code.InvalidArgument);
      });
      const message = call.lines(response, (line) => fromJson(method.output, line, READING));
      const trailer = new Headers();
      return { stream: true, service: method.parent, method, header: response.headers, trailer, message };
    },
  };
}

/** One request and the reading of its response. */
class TwinCall {
  readonly #late: AbortSignal | undefined;
  readonly #signal: AbortSignal;

  constructor(
    private readonly url: string,
    private readonly caller: AbortSignal | undefined,
    private readonly timeoutMs: number | undefined,
    private readonly fetching: typeof fetch,
  ) {
    this.#late = timeoutMs !== undefined && timeoutMs > 0 ? AbortSignal.timeout(timeoutMs) : undefined;
    this.#signal = AbortSignal.any([this.caller, this.#late].filter((signal) => signal !== undefined));
  }

  /** Sends the request. If the response has an error status, throws its error. */
  async send(header: HeadersInit | undefined, body: string): Promise<Response> {
    const headers = new Headers(header);
    headers.set("content-type", "application/json");
    if (this.#late !== undefined) {
      headers.set("connect-timeout-ms", String(this.timeoutMs));
    }
    const response = await this.fetching(this.url, { method: "POST", headers, body, signal: this.#signal });
    if (!response.ok) {
      throw errorOf(await problemOf(response), response);
    }
    return response;
  }

  /** Yields the messages in a response that has one message per line. */
  async *lines<T>(response: Response, read: (line: JsonValue) => T): AsyncGenerator<T> {
    for await (const line of linesOf(response.body)) {
      const value = await this.told(() => JSON.parse(line) as JsonValue);
      if (typeof value === "object" && value !== null && "error" in value) {
        throw errorOf(value["error"] as Problem, response);
      }
      yield await this.told(() => read(value));
    }
  }

  /** Runs a step and converts errors, such as `fetch`'s, into GradewireErrors with a code. */
  async told<T>(step: () => Promise<T> | T): Promise<T> {
    try {
      return await step();
    } catch (error) {
      if (error instanceof GradewireError) {
        throw error;
      }
      const said = error instanceof Error ? error.message : String(error);
      throw new GradewireError(`${this.url}: ${said}`, this.#codeOf(error), { cause: error });
    }
  }

  #codeOf(error: unknown): Code {
    if (this.caller?.aborted) {
      return Code.Canceled;
    }
    if (this.#late?.aborted) {
      return Code.DeadlineExceeded;
    }
    // fetch's specification says that it throws a TypeError if there is no response. Other errors are in the response.
    return error instanceof TypeError ? Code.Unavailable : Code.Internal;
  }
}

function bodyOf<Desc extends DescMessage>(schema: Desc, input: MessageInitShape<Desc>): string {
  return JSON.stringify(toJson(schema, create(schema, input)));
}

async function problemOf(response: Response): Promise<Problem> {
  const text = await response.text();
  if (response.headers.get("content-type")?.startsWith("application/problem+json")) {
    return JSON.parse(text) as Problem;
  }
  // A proxy sent this response, not the gateway.
  const unavailable = response.status >= 502 && response.status <= 504;
  return { detail: `HTTP ${response.status}: ${text.slice(0, 200)}`, code: unavailable ? "unavailable" : "unknown" };
}

function errorOf(problem: Problem, response: Response): GradewireError {
  const { detail = "", code = "", field, requestId, retryAfterS } = problem;
  const retryAfterMs = retryAfterS === undefined ? undefined : 1_000 * retryAfterS;
  const facts = { field, requestId, retryAfterMs };
  return new GradewireError(detail, codeFromString(code) ?? Code.Unknown, facts, response.headers);
}

async function* linesOf(body: ReadableStream<Uint8Array> | null): AsyncGenerator<string> {
  const reader = body?.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  for (let read = await reader?.read(); read !== undefined && !read.done; read = await reader?.read()) {
    const lines = (rest + decoder.decode(read.value, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    yield* lines.filter((line) => line !== "");
  }
  if (rest !== "") {
    yield rest;
  }
}
