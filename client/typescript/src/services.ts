import { type Client, createClient, type Transport } from "@connectrpc/connect";

import { Judging } from "./gen/gradewire/v1/judging_pb.js";
import { Models } from "./gen/gradewire/v1/models_pb.js";
import { References } from "./gen/gradewire/v1/references_pb.js";
import { Scoring } from "./gen/gradewire/v1/scoring_pb.js";

/** The generated clients of all services. */
export interface Services {
  readonly scoring: Client<typeof Scoring>;
  readonly judging: Client<typeof Judging>;
  readonly references: Client<typeof References>;
  readonly models: Client<typeof Models>;
}

/** Returns clients for all services that share a transport. */
export function servicesOver(transport: Transport): Services {
  return {
    scoring: createClient(Scoring, transport),
    judging: createClient(Judging, transport),
    references: createClient(References, transport),
    models: createClient(Models, transport),
  };
}
