// Results for one answer: scores with their parts, the window marked in the text, and the step that decided.

import { copyButton, el, foreign, visible } from "./dom.js";
import { snake, statusName, warningName } from "./catalog.js";
import { duration, score } from "./numbers.js";
import { findWindow } from "./window.js";

const AUTO_REASONS = {
  certain: "certain: outside the band",
  sample: "in the sample that the judge always grades",
  band: "inside the band",
  refused: "inside the band, where the judge was no better",
};
const UNCERTAIN_REASONS = {
  band: "the probability lies inside the band",
  unlike: "the answer is unlike the answers of the fit",
  rule: "a rule calls the answer wrong, but everything else calls it right",
};
const WARNINGS = {
  TRUNCATED: "TRUNCATED: a text was longer than the model's limit, so only its beginning counted",
  UNCALIBRATED: "UNCALIBRATED: the threshold was not chosen for this sentence weight; trust the order of scores, not right and wrong",
  MASKED: "MASKED: the judge did not see words in the answer that claim the answer is right",
};
const TIMES = [["queueS", "queue"], ["cacheS", "cache"], ["tokenizeS", "tokenizer"], ["inferenceS", "model"]];
const HITS = [["memory", "memory"], ["disk", "disk"], ["redis", "Redis"], ["joined", "joined"], ["computed", "computed"]];

/** Returns a card with all results for one answer. */
export function answerCard({ name, item, results, asked, provenance, catalog }) {
  const text = item.prediction.normalize("NFC");
  const shown = el("p", { class: "answer", dir: "auto" });
  const note = el("p", { class: "note" });
  const marked = new Marked(text, shown, note);
  const lines = results.map((result) => resultBlock(asked[result.metricIndex ?? 0], result, provenance[result.metricIndex ?? 0], catalog, marked));
  marked.first();
  return el("article", { class: "card result", "aria-label": name },
    el("h3", {}, name),
    shown, note,
    referenceList(item.references, results, asked),
    el("div", { class: "metrics" }, lines));
}

/** The answer's text, with one metric's window marked. */
class Marked {
  constructor(text, place, note) {
    this.text = text;
    this.place = place;
    this.note = note;
    this.buttons = [];
    place.append(foreign(text));
  }

  button(label, window) {
    const button = el("button", { type: "button", class: "small", "aria-pressed": "false" }, "Mark the window");
    button.addEventListener("click", () => this.#show(button, label, window));
    this.buttons.push(() => button.click());
    this.all = [...(this.all ?? []), button];
    return button;
  }

  first() {
    this.buttons[0]?.();
  }

  #show(button, label, window) {
    for (const other of this.all) other.setAttribute("aria-pressed", String(other === button));
    const found = findWindow(this.text, window);
    if (!found) {
      this.place.replaceChildren(foreign(this.text));
      this.note.textContent = `The window that ${label} found is not in the text.`;
      return;
    }
    const [before, inside, after] = [this.text.slice(0, found.start), this.text.slice(found.start, found.end), this.text.slice(found.end)];
    this.place.replaceChildren(el("bdi", {}, visible(before), el("mark", {}, visible(inside)), visible(after)));
    this.note.textContent = found.exact ? `Marked: the window of ${label}.` : `Marked: about where the window of ${label} is.`;
  }
}

function referenceList(references, results, asked) {
  const matched = references.map((_, at) => results
    // If all references score 0, the server names the first one, although it does not match.
    .filter((result) => result.matchedReference === at && (result.score ?? 0) > 0)
    .map((result) => asked[result.metricIndex ?? 0].label));
  return el("div", { class: "references" },
    el("h4", {}, "References"),
    el("ol", {}, references.map((reference, at) => el("li", { class: matched[at].length ? "matched" : "" },
      foreign(reference.normalize("NFC")),
      matched[at].length ? [" ", el("small", {}, `matched by ${matched[at].join(", ")}`)] : null))));
}

function resultBlock(asked, result, provenance, catalog, marked) {
  const status = statusName(result.status);
  const parts = catalog.partsOf(result);
  const warnings = (result.warnings ?? []).map(warningName);
  const uncertain = warnings.includes("UNCERTAIN");
  const window = parts?.values.bestWindow;
  return el("section", { class: "metric", "aria-label": asked.label },
    el("div", { class: "metric-head" },
      el("h4", {}, asked.label),
      status === "OK" ? scoreBar(asked.metric, result.score) : el("strong", { class: "badge failed" }, status),
      result.correct === undefined ? null : el("span", { class: `badge ${result.correct ? "right" : "wrong"}` }, result.correct ? "right" : "wrong"),
      uncertain ? el("span", { class: "badge uncertain" }, "UNCERTAIN") : null),
    result.message ? el("p", { class: "why" }, visible(result.message)) : null,
    decided(asked.metric.name, parts, uncertain),
    warningNotes(warnings.filter((warning) => warning !== "UNCERTAIN")),
    window ? marked.button(asked.label, window) : null,
    parts ? partsTable(parts, asked.label) : null,
    times(result),
    provenance?.line ? lineOf(asked.label, provenance.line) : null);
}

function scoreBar(metric, value) {
  const width = metric.maximum - metric.minimum || 1;
  const share = Math.min(1, Math.max(0, (value - metric.minimum) / width));
  return el("span", { class: "score" },
    el("strong", {}, score(value)),
    el("meter", { min: "0", max: "1", value: share, "aria-label": `${score(value)}, from ${metric.minimum} to ${metric.maximum}` }));
}

function decided(name, parts, uncertain) {
  const values = parts?.values ?? {};
  if (values.decidedBy) {
    const why = name === "auto" ? AUTO_REASONS[values.reason] ?? values.reason : "";
    const judge = values.judgeStatus ? `; the judge: ${values.judgeStatus}` : "";
    return el("p", { class: "why" }, "Decided by ", el("strong", {}, visible(values.decidedBy)), visible(`${why ? ` (${why})` : ""}${judge}.`));
  }
  if (uncertain) {
    return el("p", { class: "why" }, `The verdict is not reliable: ${UNCERTAIN_REASONS[values.uncertainReason] ?? "let a person or a judge check it"}.`);
  }
  if (values.bandLower !== undefined) {
    return el("p", { class: "why" }, `Decided by the fit: the probability lies outside the band ${score(values.bandLower)} to ${score(values.bandUpper)}.`);
  }
  return null;
}

function warningNotes(warnings) {
  return warnings.map((warning) => el("p", { class: "note" }, visible(WARNINGS[warning] ?? warning), "."));
}

function partsTable(parts, label) {
  const rows = Object.entries(parts.values)
    .filter(([, value]) => value !== "" && !(Array.isArray(value) && !value.length) && !(typeof value === "object" && !Object.keys(value).length))
    .map(([name, value]) => el("div", {}, el("dt", {}, snake(name)), el("dd", {}, foreign(written(value)))));
  return el("details", { open: rows.length <= 10 },
    el("summary", {}, `Parts of ${label}`), el("dl", { class: "parts" }, rows));
}

function written(value) {
  if (typeof value === "number") return Number.isInteger(value) ? String(value) : score(value);
  if (Array.isArray(value)) return value.map(written).join(", ");
  if (value && typeof value === "object") return Object.entries(value).map(([name, one]) => `${name} ${written(one)}`).join(", ");
  return String(value);
}

function times(result) {
  const spent = TIMES.filter(([name]) => result.timing?.[name]).map(([name, said]) => `${said} ${duration(result.timing[name])}`);
  const hits = HITS.filter(([name]) => result.cacheHits?.[name]).map(([name, said]) => `${result.cacheHits[name]} ${said}`);
  const said = [spent.length ? `Time: ${spent.join(", ")}` : "", hits.length ? `texts: ${hits.join(", ")}` : ""].filter(Boolean);
  return said.length ? el("p", { class: "note" }, `${said.join("; ")}.`) : null;
}

function lineOf(label, line) {
  return el("div", { class: "line" },
    el("code", {}, visible(line)),
    copyButton(`the identifier of ${label}`, () => line));
}
