import type { MessageInitShape } from "@bufbuild/protobuf";
import { type CallOptions, type Client, createClient, type Transport } from "@connectrpc/connect";

import { Judging } from "./gen/gradewire/v1/judging_pb.js";
import { Models } from "./gen/gradewire/v1/models_pb.js";
import { type PrepareProgress, PrepareRequestSchema, References } from "./gen/gradewire/v1/references_pb.js";
import { ScoreRequestSchema, type ScoreResponse, Scoring } from "./gen/gradewire/v1/scoring_pb.js";
import { type WithIdentifiers, withMetrics } from "./metrics.js";

/** The generated clients of all services. Requests take metric identifiers, such as `"smile:fast"`, beside metrics. */
export interface Services {
  readonly scoring: Omit<Client<typeof Scoring>, "score"> & {
    score(
      request: WithIdentifiers<MessageInitShape<typeof ScoreRequestSchema>>,
      options?: CallOptions,
    ): Promise<ScoreResponse>;
  };
  readonly judging: Client<typeof Judging>;
  readonly references: Omit<Client<typeof References>, "prepare"> & {
    prepare(
      request: WithIdentifiers<MessageInitShape<typeof PrepareRequestSchema>>,
      options?: CallOptions,
    ): AsyncIterable<PrepareProgress>;
  };
  readonly models: Client<typeof Models>;
}

/** Returns clients for all services that share a transport. */
export function servicesOver(transport: Transport): Services {
  const scoring = createClient(Scoring, transport);
  const references = createClient(References, transport);
  return {
    scoring: {
      ...scoring,
      score: async (request, options) => scoring.score(withMetrics(ScoreRequestSchema, request), options),
    },
    judging: createClient(Judging, transport),
    references: {
      ...references,
      prepare: (request, options) => references.prepare(withMetrics(PrepareRequestSchema, request), options),
    },
    models: createClient(Models, transport),
  };
}
