import {
  create,
  type DescField,
  type DescMessage,
  type MessageInitShape,
  type MessageShape,
  ScalarType,
} from "@bufbuild/protobuf";
import type { GenMessage } from "@bufbuild/protobuf/codegenv2";
import { Code } from "@connectrpc/connect";

import { GradewireError } from "./errors.js";
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

/** A metric as a message, or as an identifier such as `"smile:fast"` or `"correctness?grader=none"`. */
export type MetricLike = string | MessageInitShape<typeof MetricSpecSchema>;

/** A request whose metrics may be identifiers. */
export type WithIdentifiers<Request> = Request extends unknown
  ? Omit<Request, "metrics"> & { readonly metrics?: readonly MetricLike[] }
  : never;

interface ParsedMetric {
  readonly spec: MetricSpec;
  /** The reference set, which belongs to the request; "" without a set. */
  readonly referenceSet: string;
}

const IDENTIFIER = /^([A-Za-z_]\w*)(?::(\w+))?(?:\/([0-9]+))?(?:\?(.*))?$/;
const SHAPE = "write NAME, NAME:PRESET or NAME:PRESET/VERSION?KEY=VALUE&KEY=VALUE";
const SET = "reference_set";
/** Current metric names by former names. */
const FORMER: Readonly<Record<string, string>> = { calibrated: "correctness" };
const METRICS = new Map(
  MetricSpecSchema.fields.flatMap((field) =>
    field.fieldKind === "message" ? [[field.name, { field, message: field.message }] as const] : [],
  ),
);

/**
 * Returns the request's message, with metrics in place of identifiers. A reference set in an identifier becomes the
 * request's.
 *
 * Throws a GradewireError with the code `InvalidArgument` and the `field` if an identifier is wrong.
 */
export function withMetrics<Desc extends DescMessage>(
  schema: Desc,
  request: WithIdentifiers<MessageInitShape<Desc>>,
): MessageShape<Desc> {
  const { metrics, ...rest } = request as { metrics?: readonly MetricLike[]; referenceSet?: string };
  if (metrics === undefined) {
    return create(schema, rest as MessageInitShape<Desc>);
  }
  const sets = new Map(rest.referenceSet ? [[SET, rest.referenceSet]] : []);
  const specs = metrics.flatMap((metric, at) => {
    if (typeof metric !== "string") {
      return [metric];
    }
    const path = `metrics[${at}]`;
    return metric.split(",").map((identifier) => {
      const { spec, referenceSet } = parsed(identifier, path);
      if (referenceSet !== "") {
        sets.set(path, referenceSet);
      }
      return spec;
    });
  });
  if (new Set(sets.values()).size > 1) {
    const said = [...sets].map(([path, name]) => `${path} names '${name}'`).join(" and ");
    throw invalid(SET, `${said}, but a call has one set; leave out one of them, or make two calls`);
  }
  const [named] = sets.values();
  const set = named === undefined ? {} : { referenceSet: named };
  return create(schema, { ...rest, metrics: specs, ...set } as unknown as MessageInitShape<Desc>);
}

function parsed(identifier: string, path: string): ParsedMetric {
  const found = IDENTIFIER.exec(identifier.trim());
  if (found === null) {
    throw invalid(path, `'${identifier}' is not a metric: ${SHAPE}`);
  }
  const [, written = "", preset, version, parameters] = found;
  const name = FORMER[written] ?? written;
  const metric = METRICS.get(name);
  if (name === "compare") {
    throw invalid(path, `'${identifier}' compares two answers: use compareStream or judging.compare`);
  }
  if (metric === undefined) {
    const known = [...METRICS.keys()].filter((each) => each !== "compare").join(", ");
    const place = identifier === name ? "" : `'${identifier}': `;
    throw invalid(path, `${place}unknown metric '${name}': use one of ${known}`);
  }
  const fail = (said: string): never => {
    throw invalid(path, `'${identifier}': ${said}`);
  };
  const fields = new Map(metric.message.fields.map((field) => [field.name, field]));
  const prepared = preparedOf(metric.message);
  const names = [...fields.keys(), ...(prepared === undefined ? [] : [SET])].filter((each) => each !== "preset").sort();
  const texts = new Map<string, string>();
  if (preset !== undefined) {
    texts.set("preset", fields.has("preset") ? preset : fail(`${name} has no presets: leave out ':${preset}'`));
  }
  for (const pair of parameters ? parameters.split("&") : []) {
    const [key = "", ...rest] = pair.split("=");
    if (!names.includes(key)) {
      fail(`${name} has no parameter '${key}'; its parameters: ${names.map((each) => `${each}=…`).join(", ")}`);
    } else if (rest.length === 0) {
      fail(`${key} has no value: write ${key}=VALUE`);
    } else if (texts.has(key)) {
      throw invalid(path, `'${identifier}' has ${key} twice: leave out one`);
    }
    texts.set(key, unquoted(rest.join("=")));
  }
  const referenceSet = texts.get(SET) ?? "";
  texts.delete(SET);
  const values: Record<string, unknown> = {};
  for (const [key, text] of texts) {
    const field = fields.get(key);
    const isChoice = field?.fieldKind === "enum";
    values[field?.localName ?? key] = isChoice ? choiceOf(field, text, name, path) : valueOf(field, text, name, fail);
  }
  if (referenceSet !== "" && prepared !== undefined) {
    values[prepared.field.localName] ??= prepared.number;
    if (values[prepared.field.localName] !== prepared.number) {
      fail(`a reference set needs ${prepared.field.name}=prepared: leave out one of the two`);
    }
  }
  const chosen = { version: Number(version ?? 0), metric: { case: metric.field.localName, value: values } };
  return { spec: create(MetricSpecSchema, chosen as MessageInitShape<typeof MetricSpecSchema>), referenceSet };
}

/** Returns the parameter whose value "prepared" makes a metric read a reference set, and the value's number. */
function preparedOf(message: DescMessage): { field: DescField; number: number } | undefined {
  for (const field of message.fields) {
    const value = field.fieldKind === "enum" ? choicesOf(field).get("prepared") : undefined;
    if (value !== undefined) {
      return { field, number: value };
    }
  }
  return undefined;
}

function choicesOf(field: DescField & { fieldKind: "enum" }): Map<string, number> {
  const values = field.enum.values.filter((value) => value.number !== 0);
  return new Map(values.map((value) => [value.localName.toLowerCase(), value.number]));
}

function choiceOf(field: DescField & { fieldKind: "enum" }, text: string, metric: string, path: string): number {
  const choices = choicesOf(field);
  const number = choices.get(text);
  if (number === undefined) {
    const allowed = [...choices.keys()].join(", ");
    throw invalid(path, `${metric} has no ${field.name} '${text}': use one of ${allowed}`);
  }
  return number;
}

function valueOf(field: DescField | undefined, text: string, metric: string, fail: (said: string) => never): unknown {
  const said = `${metric}: ${field?.name}='${text}' is not`;
  switch (field?.scalar) {
    case ScalarType.BOOL:
      return /^(true|false)$/.test(text) ? text === "true" : fail(`${said} true or false`);
    case ScalarType.UINT32:
      return /^[0-9]{1,10}$/.test(text) ? Number(text) : fail(`${said} a whole number, 0 or more`);
    case ScalarType.DOUBLE:
      return numberOf(text) ?? fail(`${said} a number`);
    default:
      return text;
  }
}

function numberOf(text: string): number | undefined {
  return /^\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?\s*$/i.test(text) ? Number(text) : undefined;
}

function unquoted(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // a % that starts no escape stands for itself
  }
}

function invalid(field: string, said: string): GradewireError {
  return new GradewireError(`${field}: ${said}`, Code.InvalidArgument, { field, mayPass: false });
}
