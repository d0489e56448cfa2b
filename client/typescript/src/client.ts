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
  ScoreStreamConfigSchema,
  ScoreStreamRequestSchema,
} from "./gen/gradewire/v1/scoring_pb.js";
import { ItemSchema } from "./gen/gradewire/v1/types_pb.js";
import { type WithIdentifiers, withMetrics } from "./metrics.js";
import { type Services, servicesOver } from "./services.js";
import { RowStream, type StreamOptions } from "./streams/row-stream.js";
import { type CallPolicy, withPolicy } from "./transport/policy.js";

/** Options for a connection to a server. */
export interface ConnectionOptions extends CallPolicy {
  /** Node's TLS options for `https://`, such as `ca`, `cert` and `key`. */
  readonly tls?: SecureClientSessionOptions;
}

/** The rows of a stream, in memory or produced on demand. */
export type Rows<T> = Iterable<T> | AsyncIterable<T>;

/** A connection to a server. Call `close` to end it. */
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
   * Scores a stream of items with bounded memory. The client reads at most `aheadRows` items ahead of the results that
   * you have consumed.
   *
   * Yields each item once, with all its results, as soon as it is finished. `index` is the item's position in `items`.
   * After a temporary failure, a new connection resumes the unfinished items.
   */
  scoreStream(
    items: Rows<MessageInitShape<typeof ItemSchema>>,
    config: WithIdentifiers<MessageInitShape<typeof ScoreStreamConfigSchema>>,
    options: StreamOptions = {},
  ): AsyncGenerator<ItemResult, void, undefined> {
    const resolved = withMetrics(ScoreStreamConfigSchema, config);
    const stream = new RowStream(
      items,
      {
        open: (requests: AsyncIterable<MessageInitShape<typeof ScoreStreamRequestSchema>>, signal) =>
          this.scoring.scoreStream(requests, { signal }),
        first: () => ({ kind: { case: "config", value: resolved } }) as const,
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

  /** Compares a stream of answer pairs, with the same limits and retries as `scoreStream`. */
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

  /** Closes the connection. Running and later calls fail with the code `Canceled`. */
  close(): void {
    this.#closed.abort();
    this.#sessions.abort(new GradewireError("the client was closed", Code.Canceled));
  }
}

/**
 * Returns a client for the server at `baseUrl`. The client connects at its first call.
 *
 * @param baseUrl `http://host:50051`, or `https://` if the server has a certificate.
 */
export function connect(baseUrl: string, options: ConnectionOptions = {}): GradewireClient {
  return new GradewireClient(baseUrl, options);
}
