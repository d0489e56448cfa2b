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

/** How to reach a server. */
export interface ConnectionOptions extends CallPolicy {
  /** For `https://`: `ca`, `cert`, `key` and whatever else Node takes. */
  readonly tls?: SecureClientSessionOptions;
}

/** Rows of a stream: at hand, or made as they are needed. */
export type Rows<T> = Iterable<T> | AsyncIterable<T>;

/** A connection to a server; `close` ends it. */
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
   * Scores items as they come, with bounded memory: the source is read while fewer than `aheadRows` items lie between
   * it and the results that you took. Yields each item once, with all its results, in the order in which they are done
   * (`index` is the position in the source). After a break that may pass, unfinished items go on a new connection.
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

  /** Compares pairs of answers as `scoreStream` scores items. */
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

  /** Closes the connection; calls that are under way, and later ones, end as cancelled. */
  close(): void {
    this.#closed.abort();
    this.#sessions.abort(new GradewireError("the client was closed", Code.Canceled));
  }
}

/**
 * A client of the server at an address. Nothing is sent before the first call.
 *
 * @param baseUrl `http://host:50051`, or `https://` where the server has a certificate.
 */
export function connect(baseUrl: string, options: ConnectionOptions = {}): GradewireClient {
  return new GradewireClient(baseUrl, options);
}
