// Tables of a run's first rows in their order, scored or failed, and of more failed rows.

import { el, foreign, visible } from "./dom.js";
import { count, score } from "./numbers.js";

const FIRST = 100;
const FURTHER = 100;
const SHOWN_CHARACTERS = 200;

export class RowTables {
  constructor(labels) {
    this.labels = labels;
    this.first = [];
    this.further = [];
    this.rows = 0;
    this.failedRows = 0;
  }

  add(row) {
    this.rows += 1;
    const isFailed = Object.values(row.scores).some((result) => result.status !== "OK");
    this.failedRows += Number(isFailed);
    const kept = {
      index: row.row.index, id: row.item?.id ?? "", prediction: (row.item?.prediction ?? "").slice(0, SHOWN_CHARACTERS), scores: row.scores,
    };
    if (this.first.length < FIRST) this.first.push(kept);
    else if (isFailed && this.further.length < FURTHER) this.further.push(kept);
  }

  node() {
    const more = this.rows > FIRST ? `, the first ${FIRST} of ${count(this.rows)}` : "";
    return el("div", {},
      el("h3", {}, "Rows"),
      this.#table(`Rows in the order of the file${more}`, this.first),
      this.further.length ? this.#table(`More rows without a score (${count(this.failedRows)} in total)`, this.further) : null);
  }

  #table(caption, rows) {
    return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
      el("table", {}, el("caption", {}, caption),
        el("thead", {}, el("tr", {}, ["Row", "Id", "Answer", ...this.labels].map((name) => el("th", { scope: "col" }, name)))),
        el("tbody", {}, rows.map((row) => el("tr", {},
          el("th", { scope: "row" }, count(row.index + 1)),
          el("td", { class: "id" }, foreign(row.id)),
          el("td", { class: "text" }, foreign(row.prediction)),
          this.labels.map((label) => resultCell(row.scores[label])))))));
  }
}

function resultCell(result) {
  if (result.status !== "OK") {
    return el("td", { class: "failed" }, el("strong", {}, result.status), " ", el("small", {}, visible(result.message ?? "")));
  }
  const verdict = result.correct === undefined ? "" : result.correct ? " right" : " wrong";
  const uncertain = result.warnings?.includes("UNCERTAIN") ? ", uncertain" : "";
  return el("td", {}, score(result.score), verdict || uncertain ? el("small", {}, `${verdict}${uncertain}`) : null);
}
