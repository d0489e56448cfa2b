// The report of agreement with people: made by the code of `gradewire agree`, shown in a frame that may do nothing else.

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

  /** Has the server leave it: nobody waits for it any longer. */
  stop() {
    this.stopping.abort();
  }

  async make(outputs, stem) {
    const lines = outputs.report.blob("application/x-ndjson");
    this.place.replaceChildren(el("h3", { tabindex: "-1" }, "Agreement with people"));
    if (!this.limits.available) {
      this.#say("The server's machine lacks what makes the report (pip install 'gradewire[agree]'); gradewire agree FILE --server HOST:PORT --html report.html makes it elsewhere.");
      return;
    }
    if (outputs.tooManyForReport || lines.size > this.limits.maxBytes) {
      this.#say(`The ${count(outputs.reported)} labelled rows are too many: here a report takes up to ${size(this.limits.maxBytes)}. gradewire agree FILE --server HOST:PORT --html report.html has no such limit.`);
      return;
    }
    const status = el("p", { class: "note", role: "status" }, `Making the report of ${count(outputs.reported)} labelled rows …`);
    this.place.append(status);
    let page;
    try {
      page = await postLines(PATH, lines, { signal: this.stopping.signal });
    } catch (error) {
      status.remove();
      if (error.name === "AbortError") return;
      this.#say(`There is no report: ${error.said ?? error.message}`);
      // Where it was the server's business (another report, a restart), a second try may have one.
      if (AGAIN.has(error.status)) this.#offer(() => this.make(outputs, stem));
      return;
    }
    const blob = new Blob([page], { type: "text/html" });
    status.textContent = `The report of ${count(outputs.reported)} labelled rows, ${size(blob.size)}.`;
    this.place.append(
      el("div", { class: "row" }, el("button", { type: "button", onclick: () => save(blob, `${stem}.report.html`) }, "Save the report")),
      // Scripts of the report's own run there by their digests, which this page's policy names, in an origin of its own.
      el("iframe", { title: "Report of agreement with people", sandbox: "allow-scripts", src: URL.createObjectURL(blob), class: "report" }));
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
