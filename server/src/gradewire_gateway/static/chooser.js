// The controls with which users choose metrics and their parameters.

import { byId, el, visible } from "./dom.js";
import { valueName } from "./catalog.js";

const MODEL_KINDS = { judge_model: "judge", grader: "grader" };

export class Chooser {
  constructor(catalog) {
    this.catalog = catalog;
    this.rows = catalog.metrics.map((metric) => new MetricRow(metric, catalog));
    const [first, further] = [true, false].map((wanted) =>
      this.rows.filter((row) => row.metric.recommended === wanted).map((row) => row.node));
    byId("metrics-list").replaceChildren(
      el("ul", { class: "plain" }, first),
      el("details", { id: "more-metrics" }, el("summary", {}, `More metrics (${further.length})`), el("ul", { class: "plain" }, further)),
    );
    for (const name of ["correctness", "smile"]) this.rows.find((row) => row.metric.name === name)?.choose();
    if (!this.rows.some((row) => row.chosen)) this.rows.find((row) => row.metric.available)?.choose();
  }

  /** Returns the chosen metrics: [{metric, label, spec}]; throws an Error that names an invalid parameter. */
  chosen() {
    const found = this.rows.filter((row) => row.chosen).map((row) => row.asked());
    if (!found.length) throw new Error("choose at least one metric");
    return found;
  }
}

class MetricRow {
  constructor(metric, catalog) {
    this.metric = metric;
    const id = `metric-${metric.name}`;
    this.box = el("input", { type: "checkbox", id, disabled: !metric.available, "aria-describedby": `${id}-about` });
    this.controls = metric.parameters.map((parameter) => new ParameterControl(metric, parameter, catalog));
    this.settings = this.controls.length
      ? el("details", { class: "settings", hidden: true },
        el("summary", {}, `Settings of ${metric.name}`),
        el("div", { class: "parameters" }, this.controls.map((control) => control.node)))
      : null;
    this.box.addEventListener("change", () => this.#show());
    this.node = el("li", { class: metric.available ? "" : "missing" },
      el("label", { class: "check", for: id }, this.box, el("strong", {}, metric.name)),
      el("p", { class: "note", id: `${id}-about` },
        visible(metric.available ? metric.description : `Not available: ${metric.missing || "the model that it needs is not loaded"}`)),
      this.settings);
  }

  get chosen() {
    return this.box.checked;
  }

  choose() {
    if (!this.metric.available) return;
    this.box.checked = true;
    this.#show();
  }

  #show() {
    if (this.settings) this.settings.hidden = !this.box.checked;
  }

  asked() {
    const given = this.controls.map((control) => control.given()).filter((one) => one !== null);
    const preset = given.find((one) => one.parameter.name === "preset");
    const others = given.filter((one) => one !== preset).map((one) => `${one.parameter.name}=${one.text}`);
    return {
      metric: this.metric,
      label: `${this.metric.name}${preset ? `:${preset.text}` : ""}${others.length ? `?${others.join("&")}` : ""}`,
      spec: { [this.metric.field]: Object.fromEntries(given.map((one) => [one.parameter.field, one.value])) },
    };
  }
}

class ParameterControl {
  constructor(metric, parameter, catalog) {
    this.metric = metric;
    this.parameter = parameter;
    const id = `metric-${metric.name}-${parameter.name}`;
    const about = `${id}-about`;
    this.input = this.#input(id, about, catalog);
    const hint = [parameter.description, parameter.allowed && `Allowed: ${parameter.allowed}.`].filter(Boolean).join(" ");
    const label = el("label", { for: id }, parameter.name);
    this.node = el("div", { class: "field" },
      parameter.kind === "boolean" ? el("label", { class: "check", for: id }, this.input, parameter.name) : [label, this.input],
      el("small", { id: about }, visible(hint)));
  }

  #input(id, about, catalog) {
    const { parameter, metric } = this;
    const common = { id, "aria-describedby": about };
    const usual = parameter.defaultValue ? `default: ${parameter.defaultValue}` : "default";
    if (parameter.kind === "boolean") return el("input", { type: "checkbox", ...common });
    if (parameter.kind === "enum") {
      const options = parameter.values.slice(1).map((value) => el("option", { value }, valueName(value, parameter.values)));
      return el("select", common, el("option", { value: "" }, usual), options);
    }
    const models = this.#models(metric, catalog);
    if (models.length) {
      return el("select", common, el("option", { value: "" }, "default"), models.map((name) => el("option", { value: name }, name)));
    }
    const numeric = parameter.kind === "number" || parameter.kind === "integer";
    return el("input", { type: "text", inputmode: numeric ? "decimal" : undefined, placeholder: usual, spellcheck: "false", autocomplete: "off", ...common });
  }

  #models(metric, catalog) {
    const own = metric.needsJudge && metric.name !== "auto" ? "judge" : metric.needsGrader ? "grader" : "encoder";
    const kind = this.parameter.name === "model" ? own : MODEL_KINDS[this.parameter.name];
    const found = kind ? catalog.modelsOf(kind) : [];
    // A metric with an encoder can do without a grader.
    return this.parameter.name === "grader" && found.length ? [...found, "none"] : found;
  }

  /** Returns {parameter, value, text} if the parameter is set, else null. */
  given() {
    const { parameter, input } = this;
    if (parameter.kind === "boolean") return input.checked ? { parameter, value: true, text: "true" } : null;
    const text = input.value.trim();
    if (!text) return null;
    if (parameter.kind === "enum") return { parameter, value: text, text: valueName(text, parameter.values) };
    if (parameter.kind !== "number" && parameter.kind !== "integer") return { parameter, value: text, text };
    const value = Number(text);
    if (!Number.isFinite(value) || (parameter.kind === "integer" && !Number.isInteger(value))) {
      throw new Error(`${this.metric.name}: ${parameter.name} must be ${parameter.allowed || "a number"}`);
    }
    return { parameter, value, text };
  }
}
