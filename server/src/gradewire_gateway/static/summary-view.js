// Shows a run's summary: means, statuses, distributions, extremes and groups.

import { histogram } from "./charts.js";
import { copyButton, el, foreign, visible } from "./dom.js";
import { count, percent, score } from "./numbers.js";

/** Returns an element with a run's summary. */
export function summaryOf(summary) {
  return el("div", {},
    el("p", {}, `${count(summary.rows)} rows, ${count(summary.failed)} of them without a score for some metric. Means ignore rows without a score.`),
    overview(summary),
    el("div", { class: "charts" }, summary.metrics.map(distribution)),
    summary.groups.size ? groups(summary) : null,
    summary.metrics.map(extremes),
    el("h3", {}, "Metric identifiers that reproduce the scores"),
    summary.metrics.filter((metric) => metric.line).map((metric) =>
      el("div", { class: "line" }, el("code", {}, visible(metric.line)), copyButton(`the identifier of ${metric.label}`, () => metric.line))));
}

function table(caption, head, rows) {
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    el("table", {}, el("caption", {}, caption),
      el("thead", {}, el("tr", {}, head.map((name) => el("th", { scope: "col" }, name)))),
      el("tbody", {}, rows.map(([first, ...cells]) => el("tr", {}, el("th", { scope: "row" }, first), cells.map((one) => el("td", { class: "n" }, one)))))));
}

function overview(summary) {
  return table("Each metric over all rows", ["Metric", "Scored", "Mean", "Called right", "Uncertain", "Statuses"], summary.metrics.map((metric) => {
    const { tally } = metric;
    const statuses = [...tally.statuses].map(([status, times]) => `${status} ${count(times)}`).join(", ");
    return [metric.label, count(tally.scored), score(tally.mean), percent(tally.shareRight),
      tally.verdicts ? percent(tally.uncertain / tally.verdicts) : "–", statuses];
  }));
}

function distribution(metric) {
  const { minimum, maximum } = metric.metric;
  const { tally } = metric;
  const said = `Distribution of ${metric.label}: ${count(tally.scored)} scores from ${minimum} to ${maximum}, mean ${score(tally.mean)}`;
  return el("figure", { class: "card" }, el("figcaption", {}, said), histogram(metric.bins, { label: said, minimum, maximum }));
}

function groups(summary) {
  const head = ["Group", "Rows", ...summary.metrics.map((metric) => `${metric.label}, mean`)];
  const rows = [...summary.groups].map(([name, tallies]) => {
    const all = [...tallies.values()];
    const rowsOfGroup = [...all[0].statuses.values()].reduce((one, other) => one + other, 0);
    return [foreign(name), count(rowsOfGroup), ...all.map((tally) => score(tally.mean))];
  });
  return table(`By model and group${summary.groupsLeftOut ? ", the first 50" : ""}`, head, rows);
}

function extremes(metric) {
  if (!metric.lowest.length) return null;
  const list = (title, rows) => el("div", {}, el("h4", {}, title), el("ol", {}, rows.map((row) =>
    el("li", {}, el("strong", {}, score(row.score)), " ", foreign(row.prediction), el("small", {}, " against ", foreign(row.reference), ", row ", foreign(row.id))))));
  return el("details", {}, el("summary", {}, `Lowest and highest by ${metric.label}`),
    el("div", { class: "pair" }, list("Lowest", metric.lowest), list("Highest", metric.highest)));
}
