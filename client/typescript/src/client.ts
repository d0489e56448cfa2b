import type { SecureClientSessionOptions } from "node:http2";

import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";

import { GradewireError } from "./errors.js";
import {
  type CompareStreamConfigSchema,
  CompareStreamRequestSchema,
  type PairResult,
  PairSchema,
} from "./gen/gradewire/v1/judging_pb.js";
import {
  type ItemResult,
  type ScoreStreamConfigSchema,
  ScoreStreamRequestSchema,
} from "./gen/gradewire/v1/scoring_pb.js";
import { ItemSchema } from "./gen/gradewire/v1/types_pb.js";
import { type Services, servicesOver } from "./services.js";
import { RowStream, type StreamOptions } from "./streams/row-stream.js";
import { type CallPolicy, withPolicy } from "./transport/policy.js";

/** Options of a connection to a server. */
export interface ConnectionOptions extends CallPolicy {
  /** TLS options for `https://`: `ca`, `cert`, `key` and any other of Node's. */
  readonly tls?: SecureClientSessionOptions;
}

/** The rows of a stream, ready or made on demand. */
export type Rows<T> = Iterable<T> | AsyncIterable<T>;

/** A connection to a server, until `close`. */
export class GradewireClient implements Services {
  readonly scoring: Services["scoring"];
  readonly judging: Services["judging"];
  readonly references: Services["references"];
  readonly models: Services["models"];
  readonly #sessions: Http2SessionManager;
  readonly #closed = new AbortController();

  constructor(baseUrl: string, options: ConnectionOptions) {
    this.#sessions = new Http2SessionManager(baseUrl, {}, options.tls);
    const transport = createGrpcTransport({ baseUrl, sessionManager: this.#sessions });
    const services = servicesOver(withPolicy(transport, options, this.#closed.signal));
    this.scoring = services.scoring;
    this.judging = services.judging;
    this.references = services.references;
    this.models = services.models;
  }

  /**
   * Scores a stream of items with bounded memory: it reads the source while fewer than `aheadRows` items lie between
   * the
   * source and the results that you took. Yields each item once, with all its results, in the order in which they
   * finish
   * (`index` is the position in the source). After a temporary failure, a new connection resumes unfinished items.
   */
  scoreStream(
    items: Rows<MessageInitShape<typeof ItemSchema>>,
    config: MessageInitShape<typeof ScoreStreamConfigSchema>,
    options: StreamOptions = {},
  ): AsyncGenerator<ItemResult, void, undefined> {
    const stream = new RowStream(
      items,
      {
        open: (requests: AsyncIterable<MessageInitShape<typeof ScoreStreamRequestSchema>>, signal) =>
          this.scoring.scoreStream(requests, { signal }),
        first: () => ({ kind: { case: "config", value: config } }) as const,
        rows: (rows) => ({ kind: { case: "items", value: { items: rows } } }) as const,
        sizeBytes: (row) => toBinary(ItemSchema, create(ItemSchema, row)).length,
        parts: (reply) =>
          reply.items.map((part) => ({ number: Number(part.index), part, complete: part.complete })),
        result: (index, first: ItemResult, others) => {
          const results = [first, ...others].flatMap((part) => part.results);
          results.sort((one, other) => one.metricIndex - other.metricIndex);
          return { ...first, index: BigInt(index), results, complete: true };
        },
      },
      options,
    );
    return stream.run();
  }

  /** Compares pairs of answers, as `scoreStream` scores items. */
  compareStream(
    pairs: Rows<MessageInitShape<typeof PairSchema>>,
    config: MessageInitShape<typeof CompareStreamConfigSchema> = {},
    options: StreamOptions = {},
  ): AsyncGenerator<PairResult, void, undefined> {
    const stream = new RowStream(
      pairs,
      {
        open: (requests: AsyncIterable<MessageInitShape<typeof CompareStreamRequestSchema>>, signal) =>
          this.judging.compareStream(requests, { signal }),
        first: () => ({ kind: { case: "config", value: config } }) as const,
        rows: (rows) => ({ kind: { case: "pairs", value: { pairs: rows } } }) as const,
        sizeBytes: (row) => toBinary(PairSchema, create(PairSchema, row)).length,
        parts: (reply) => reply.pairs.map((part) => ({ number: Number(part.index), part, complete: true })),
        result: (index, only: PairResult) => ({ ...only, index: BigInt(index) }),
      },
      options,
    );
    return stream.run();
  }

  /** Closes the connection. Running and later calls fail as cancelled. */
  close(): void {
    this.#closed.abort();
    this.#sessions.abort(new GradewireError("the client was closed", Code.Canceled));
  }
}

/**
 * Returns a client of the server at an address. It sends nothing before the first call.
 *
 * @param baseUrl `http://host:50051`, or `https://` if the server has a certificate.
 */
export function connect(baseUrl: string, options: ConnectionOptions = {}): GradewireClient {
  return new GradewireClient(baseUrl, options);
}
