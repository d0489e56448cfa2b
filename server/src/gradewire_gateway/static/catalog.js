// The server's metrics with their parameters, its models and its limits.

import { LIST, call, get } from "./api.js";

const RECOMMENDED = ["correctness", "smile", "exact_match", "auto"];
const NO_PARTS = new Set([
  "metricIndex", "score", "status", "message", "warnings", "matchedReference", "correct", "cacheHits", "timing", "retryAfterS",
]);

/** Returns a field's name in JSON: "exactMatch" for "exact_match". */
export function camel(name) {
  return name.replace(/_([a-z0-9])/g, (_, letter) => letter.toUpperCase());
}

/** Returns a field's name in the protos, the command and Python: "exact_match" for "exactMatch". */
export function snake(name) {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** Returns an enum value's name for users: "fast" for "SMILE_PRESET_FAST" of "SMILE_PRESET_UNSPECIFIED", … */
export function valueName(value, values) {
  const prefix = values[0].replace(/UNSPECIFIED$/, "");
  return (value.startsWith(prefix) ? value.slice(prefix.length) : value).toLowerCase();
}

/** Returns a parameter's type: {kind: "enum" | "boolean" | "number" | "integer" | "string", values}. */
function kindOf(schema, schemas) {
  const named = schema.$ref ? schemas[schema.$ref.split("/").pop()] : schema;
  if (named.enum) return { kind: "enum", values: named.enum };
  if (named.anyOf) return { kind: "number" };
  return { kind: named.type };
}

/** Models, metrics and limits, with their fields' schemas from the OpenAPI document. */
export class Catalog {
  constructor(listed, document) {
    this.schemas = document.components.schemas;
    this.models = listed.models ?? [];
    this.limits = listed.limits ?? {};
    this.version = listed.serverVersion ?? "";
    const place = (name) => (RECOMMENDED.includes(name) ? RECOMMENDED.indexOf(name) : RECOMMENDED.length);
    this.metrics = (listed.metrics ?? [])
      .map((metric) => this.#metric(metric))
      .sort((one, other) => place(one.name) - place(other.name));
  }

  static async load() {
    return new Catalog(...await Promise.all([call(LIST, {}), get("/openapi.json")]));
  }

  #metric(metric) {
    const field = camel(metric.name);
    const reference = this.schemas.MetricSpec.properties[field];
    const properties = reference ? this.schemas[reference.$ref.split("/").pop()].properties : {};
    return {
      name: metric.name,
      field,
      description: metric.description ?? "",
      advice: metric.advice ?? "",
      minimum: metric.minimum ?? 0,
      maximum: metric.maximum ?? 0,
      available: metric.available ?? false,
      missing: metric.missing ?? "",
      recommended: RECOMMENDED.includes(metric.name),
      needsJudge: metric.needsJudge ?? false,
      needsGrader: metric.needsGrader ?? false,
      parameters: (metric.parameters ?? [])
        .filter((parameter) => properties[camel(parameter.name)])
        .map((parameter) => ({
          name: parameter.name,
          field: camel(parameter.name),
          description: parameter.description ?? "",
          allowed: parameter.allowed ?? "",
          defaultValue: parameter.defaultValue ?? "",
          ...kindOf(properties[camel(parameter.name)], this.schemas),
        })),
    };
  }

  metric(name) {
    return this.metrics.find((metric) => metric.name === name);
  }

  /** Returns the names of usable models of a kind ("encoder", "grader", "judge"), the default model first. */
  modelsOf(kind) {
    return this.models
      .filter((model) => model.kind === kind && /_(LOADED|BUILT)$/.test(model.state))
      .sort((one, other) => Number(other.isDefault ?? false) - Number(one.isDefault ?? false))
      .map((model) => model.name);
  }

  /** Returns a result's parts: {kind, values}; null without parts. Adds fields that JSON omits because they are 0. */
  partsOf(result) {
    const kind = Object.keys(result).find((name) => !NO_PARTS.has(name));
    if (!kind) return null;
    const reference = this.schemas.MetricResult.properties[kind];
    const properties = reference ? this.schemas[reference.$ref.split("/").pop()].properties : {};
    const values = {};
    for (const [name, schema] of Object.entries(properties)) {
      if (name in result[kind]) values[name] = result[kind][name];
      else if ("default" in schema) values[name] = schema.default;
    }
    return { kind, values };
  }
}

/** Returns a result in the format of `gradewire score`: flat, with the protos' field names. */
export function flatResult(result, provenance, catalog) {
  const flat = { score: result.score ?? null, status: statusName(result.status) };
  if (result.message) flat.message = result.message;
  if (result.warnings?.length) flat.warnings = result.warnings.map(warningName);
  if (result.matchedReference !== undefined) flat.matched_reference = result.matchedReference;
  const parts = catalog.partsOf(result);
  for (const [name, value] of Object.entries(parts?.values ?? {})) flat[snake(name)] = value;
  if (result.correct !== undefined) flat.correct = result.correct;
  if (provenance?.line) flat.line = provenance.line;
  return flat;
}

export function statusName(status) {
  return (status ?? "STATUS_UNSPECIFIED").replace(/^STATUS_/, "");
}

export function warningName(warning) {
  return warning.replace(/^WARNING_/, "");
}
