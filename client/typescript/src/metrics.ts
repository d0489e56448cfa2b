import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { GenMessage } from "@bufbuild/protobuf/codegenv2";

import { type MetricSpec, MetricSpecSchema, Status } from "./gen/gradewire/v1/types_pb.js";

/** `"smile"`, `"exactMatch"`, …: the metrics of the wire format. */
export type MetricName = NonNullable<MetricSpec["metric"]["case"]>;

/** What a metric can be told; all of it may be left out. */
export type MetricParameters<Name extends MetricName> = MessageInitShape<
  GenMessage<Extract<MetricSpec["metric"], { case: Name }>["value"]>
>;

/**
 * A metric with its parameters.
 *
 * ```ts
 * metric("smile", { preset: SmilePreset.FAST })
 * ```
 */
export function metric<Name extends MetricName>(name: Name, parameters?: MetricParameters<Name>): MetricSpec {
  const chosen = { metric: { case: name, value: parameters ?? {} } } as MessageInitShape<typeof MetricSpecSchema>;
  return create(MetricSpecSchema, chosen);
}

/** Whether an item with this status may be scored when it is sent again later, without anything being changed. */
export function mayPass(status: Status): boolean {
  return status === Status.UNAVAILABLE || status === Status.TIMEOUT;
}
