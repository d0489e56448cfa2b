// The view in which users drop a file, score it and see its report.

import { announce, byId, el, save, visible } from "./dom.js";
import { ALIASES, mapped, unclear } from "./aliases.js";
import { count, percent, size } from "./numbers.js";
import { Outputs } from "./outputs.js";
import { UnreadableFileError, rowsOf } from "./reading.js";
import { ReportFrame } from "./report.js";
import { RowTables } from "./row-tables.js";
import { scored } from "./run.js";
import { RunSummary } from "./summary.js";
import { summaryOf } from "./summary-view.js";

const MOST_BYTES = 1_000_000_000;
const PEEKED_ROWS = 20;
const MAPPED = ["question", "references", "prediction", "id", "group", "model", "label"];
const KNOWN = Object.values(ALIASES).flat();
const ANNOUNCE_EVERY_S = 10;

export class FileView {
  constructor(chooser, access) {
    this.chooser = chooser;
    this.access = access;
    this.file = null;
    this.stop = null;
    this.report = null;
    byId("file-note").textContent = `JSONL (one object per line) or CSV, up to ${size(MOST_BYTES)}. The page reads the file in pieces and never uploads it whole. ` +
      "It finds columns by the names that gradewire score knows: question, references (or ground_truth, …), prediction (or response, …).";
    byId("file").addEventListener("change", () => this.#take(byId("file").files[0]));
    byId("file-start").addEventListener("click", () => this.#run());
    byId("file-cancel").addEventListener("click", () => this.stop?.abort());
    this.#watchDrops();
  }

  #watchDrops() {
    const drop = byId("drop");
    for (const name of ["dragenter", "dragover"]) {
      drop.addEventListener(name, (event) => { event.preventDefault(); drop.classList.add("over"); });
    }
    drop.addEventListener("dragleave", () => drop.classList.remove("over"));
    drop.addEventListener("drop", (event) => {
      event.preventDefault();
      drop.classList.remove("over");
      this.#take(event.dataTransfer.files[0]);
    });
    // A file that is dropped elsewhere must not replace the page.
    for (const name of ["dragover", "drop"]) window.addEventListener(name, (event) => event.preventDefault());
  }

  async #take(file) {
    if (!file || this.stop) return;
    this.file = null;
    byId("file-error").textContent = "";
    byId("file-start").disabled = true;
    byId("mapping").replaceChildren();
    try {
      if (file.size > MOST_BYTES) throw new UnreadableFileError(`the file has ${size(file.size)}; use gradewire score for files above ${size(MOST_BYTES)}`);
      const columns = await peeked(file);
      this.file = file;
      this.#showMapping(file, columns);
      byId("file-start").disabled = false;
      announce(`${visible(file.name)} was read; check its columns, then score the file`);
    } catch (error) {
      byId("file-error").textContent = visible(`${file.name}: ${error.message}.`);
    }
  }

  #showMapping(file, columns) {
    const found = mapped(columns);
    this.selects = Object.fromEntries(MAPPED.map((field) => {
      const options = columns.map((column) => el("option", { value: column, selected: found[field][0] === column }, visible(column)));
      return [field, el("select", { id: `map-${field}` }, el("option", { value: "" }, "none"), options)];
    }));
    this.columns = columns;
    const fields = Object.entries(unclear(columns)).map(([field, named]) => `${named.join(", ")} could be the ${field}`);
    if (fields.length) byId("file-error").textContent = visible(`Choose the columns of references and prediction: ${fields.join("; ")}.`);
    byId("mapping").replaceChildren(el("fieldset", {},
      el("legend", {}, el("bdi", {}, visible(`Columns of ${file.name}`)), `, ${size(file.size)}`),
      el("div", { class: "parameters" }, MAPPED.map((field) =>
        el("div", { class: "field" }, el("label", { for: `map-${field}` }, field), this.selects[field])))));
  }

  #mapping() {
    const found = mapped(this.columns);
    for (const [field, select] of Object.entries(this.selects)) {
      if (!select.value) found[field] = [];
      else if (found[field][0] !== select.value) found[field] = [select.value];
    }
    for (const field of ["references", "prediction"]) {
      if (!found[field].length && !(field === "references" && found.answerable.length)) throw new Error(`choose the column that contains the ${field}`);
    }
    const content = ["question", "references", "prediction", "label"].filter((field) => found[field].length);
    const twice = content.find((field) => content.some((other) => other !== field && found[other][0] === found[field][0]));
    if (twice) throw new Error(`choose another column for ${twice}, because another field is read from ${found[twice][0]}`);
    return found;
  }

  async #run() {
    if (this.stop || !this.file) return;
    const error = byId("file-error");
    error.textContent = "";
    let columns;
    let asked;
    try {
      [columns, asked] = [this.#mapping(), this.chooser.chosen()];
    } catch (fault) {
      error.textContent = `Not scored: ${fault.message}.`;
      return;
    }
    this.stop = new AbortController();
    this.report?.stop();  // free the server for this run's report
    const run = new Run(this.file, asked, this.access.report.maxBytes);
    this.#busy(true);
    try {
      await run.score(columns, this.chooser.catalog, this.stop.signal);
      run.outcome = "done";
    } catch (fault) {
      run.outcome = fault.name === "AbortError" ? "cancelled" : "failed";
      const rows = count(run.summary.rows);
      error.textContent = run.outcome === "cancelled"
        ? `Cancelled after ${rows} rows. They are shown below.`
        : visible(`Stopped after ${rows} rows: ${fault.said ?? fault.message}`);
    } finally {
      this.#busy(false);
      this.stop = null;
    }
    this.#show(run);
  }

  #busy(is) {
    const [start, cancel] = [byId("file-start"), byId("file-cancel")];
    byId("file-progress").hidden = false;
    cancel.hidden = !is;
    start.disabled = is;
    if (!is) return;
    byId("file-results").hidden = true;  // from the last run
    byId("file-report").replaceChildren();
    byId("file-bar").value = 0;
    byId("file-count").textContent = "starting …";
    cancel.focus();
  }

  #show(run) {
    const place = byId("file-results");
    place.hidden = false;
    const stem = this.file.name.replace(/\.[^.]*$/, "");
    byId("downloads").replaceChildren(
      el("button", { type: "button", onclick: () => save(run.outputs.jsonl.blob("application/x-ndjson"), `${stem}.scores.jsonl`) }, "Save as JSONL"),
      el("button", { type: "button", onclick: () => save(run.outputs.csv.blob("text/csv"), `${stem}.scores.csv`) }, "Save as CSV"));
    byId("file-summary").replaceChildren(summaryOf(run.summary));
    byId("file-rows").replaceChildren(run.tables.node());
    const report = el("div", {});  // a late report is added here, and not to a later run
    byId("file-report").replaceChildren(report);
    this.report = run.outputs.reported ? new ReportFrame(report, this.access) : null;
    if (this.report) this.report.make(run.outputs, stem);
    else report.append(el("p", { class: "note" }, "No row has a label (label, human_score, labels), so there is no report on agreement with human labels."));
    place.focus({ preventScroll: true });
    place.scrollIntoView({ block: "start" });
    announce(`${count(run.summary.rows)} rows ${run.outcome}, ${count(run.summary.failed)} with failures`);
  }
}

/** A run over a file, with its results. */
class Run {
  constructor(file, asked, maxReportBytes) {
    this.file = file;
    this.asked = asked;
    this.summary = new RunSummary(asked);
    this.outputs = new Outputs(asked.map((one) => one.label), maxReportBytes);
    this.tables = new RowTables(asked.map((one) => one.label));
    this.outcome = "";
    this.read = 0;
    this.told = performance.now();
  }

  async score(columns, catalog, signal) {
    const rows = rowsOf(this.file, KNOWN, (bytes) => { this.read = bytes; });
    const onPause = (seconds, why) => { byId("file-count").textContent = `The server is overloaded; trying again in ${seconds.toFixed(0)} s (${why})`; };
    let drawn = 0;
    for await (const row of scored(rows, { columns, asked: this.asked, catalog, signal, onPause })) {
      this.summary.add(row);
      this.outputs.add(row);
      this.tables.add(row);
      if (performance.now() - drawn > 100) {
        this.#progress();
        drawn = performance.now();
        await new Promise((resolve) => { setTimeout(resolve); });  // let the browser draw and react
      }
    }
    this.read = this.file.size;
    this.#progress();
  }

  #progress() {
    const share = this.file.size ? this.read / this.file.size : 1;
    const said = `${count(this.summary.rows)} rows scored, ${percent(share)} of the file read`;
    byId("file-bar").value = share;
    byId("file-count").textContent = said;
    if (performance.now() - this.told > 1000 * ANNOUNCE_EVERY_S) {
      this.told = performance.now();
      announce(said);
    }
  }
}

async function peeked(file) {
  const columns = new Set();
  let problem = "";
  let rows = 0;
  for await (const row of rowsOf(file, KNOWN)) {
    for (const column of Object.keys(row.fields ?? {})) columns.add(column);
    problem ||= row.fields ? "" : `${row.place} ${row.problem}`;
    rows += 1;
    if (rows === PEEKED_ROWS) break;
  }
  if (!columns.size) throw new UnreadableFileError(problem ? `none of the first rows can be read: ${problem}` : "the file has no rows");
  return [...columns];
}
