import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { GenMessage } from "@bufbuild/protobuf/codegenv2";

import { type MetricSpec, MetricSpecSchema, Status } from "./gen/gradewire/v1/types_pb.js";

/** `"smile"`, `"exactMatch"`, …: the metrics of the wire format. */
export type MetricName = NonNullable<MetricSpec["metric"]["case"]>;

/** The parameters of a metric, all optional. */
export type MetricParameters<Name extends MetricName> = MessageInitShape<
  GenMessage<Extract<MetricSpec["metric"], { case: Name }>["value"]>
>;

/**
 * Returns a metric with its parameters.
 *
 * ```ts
 * metric("smile", { preset: SmilePreset.FAST })
 * ```
 */
export function metric<Name extends MetricName>(name: Name, parameters?: MetricParameters<Name>): MetricSpec {
  const chosen = { metric: { case: name, value: parameters ?? {} } } as MessageInitShape<typeof MetricSpecSchema>;
  return create(MetricSpecSchema, chosen);
}

/** Returns true if an item with this status may be scored in a retry. */
export function mayPass(status: Status): boolean {
  return status === Status.UNAVAILABLE || status === Status.TIMEOUT;
}
