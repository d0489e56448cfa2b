// The report on agreement with human labels. `gradewire agree` makes it on the server; a sandboxed frame shows it.

import { announce, el, save, visible } from "./dom.js";
import { postLines } from "./api.js";
import { count, size } from "./numbers.js";

const PATH = "/page/report";
const AGAIN = new Set([0, 429, 503, 504]);

export class ReportFrame {
  constructor(place, access) {
    this.place = place;
    this.limits = access.report;
    this.stopping = new AbortController();
  }

  /** Lets the server stop making the report. */
  stop() {
    this.stopping.abort();
  }

  async make(outputs, stem) {
    const lines = outputs.report.blob("application/x-ndjson");
    this.place.replaceChildren(el("h3", { tabindex: "-1" }, "Agreement with human labels"));
    if (!this.limits.available) {
      this.#say("The server lacks the packages for reports (pip install 'gradewire[agree]'). You can make the report on another machine: gradewire agree FILE --server HOST:PORT --html report.html");
      return;
    }
    if (outputs.tooManyForReport || lines.size > this.limits.maxBytes) {
      this.#say(`There are too many labelled rows (${count(outputs.reported)}): their size may be up to ${size(this.limits.maxBytes)} here. This command has no limit: gradewire agree FILE --server HOST:PORT --html report.html`);
      return;
    }
    const status = el("p", { class: "note", role: "status" }, `Making the report on ${count(outputs.reported)} labelled rows …`);
    this.place.append(status);
    let page;
    try {
      page = await postLines(PATH, lines, { signal: this.stopping.signal });
    } catch (error) {
      status.remove();
      if (error.name === "AbortError") return;
      this.#say(`There is no report: ${error.said ?? error.message}`);
      // If the cause was the server (another report, a restart), a second attempt may succeed.
      if (AGAIN.has(error.status)) this.#offer(() => this.make(outputs, stem));
      return;
    }
    const blob = new Blob([page], { type: "text/html" });
    status.textContent = `The report on ${count(outputs.reported)} labelled rows, ${size(blob.size)}.`;
    this.place.append(
      el("div", { class: "row" }, el("button", { type: "button", onclick: () => save(blob, `${stem}.report.html`) }, "Save the report")),
      // The report's scripts run in a separate origin, and only because this page's policy lists their digests.
      el("iframe", { title: "Report on agreement with human labels", sandbox: "allow-scripts", src: URL.createObjectURL(blob), class: "report" }));
    announce("the report is ready");
  }

  #say(text) {
    this.place.append(el("p", { class: "error" }, visible(text)));
  }

  #offer(again) {
    const button = el("button", { type: "button", onclick: () => { again(); this.place.querySelector("h3").focus(); } }, "Make the report");
    this.place.append(el("div", { class: "row" }, button));
  }
}
