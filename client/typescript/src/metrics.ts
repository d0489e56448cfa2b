import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { GenMessage } from "@bufbuild/protobuf/codegenv2";

import { type MetricSpec, MetricSpecSchema, Status } from "./gen/gradewire/v1/types_pb.js";

/** A metric's name in the wire format, such as `"smile"` or `"exactMatch"`. */
export type MetricName = NonNullable<MetricSpec["metric"]["case"]>;

/** A metric's parameters; all are optional. */
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

/** Returns true if a retry may score an item that got this status. */
export function mayPass(status: Status): boolean {
  return status === Status.UNAVAILABLE || status === Status.TIMEOUT;
}
