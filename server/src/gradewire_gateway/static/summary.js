// A run's summary, computed row by row in bounded memory.

export const BINS = 20;
const KEPT = 5;
const MOST_GROUPS = 50;
const SHOWN_CHARACTERS = 300;

/** One metric's statistics over rows; means ignore rows without a score. */
export class Tally {
  constructor() {
    this.scored = 0;
    this.sum = 0;
    this.verdicts = 0;
    this.right = 0;
    this.uncertain = 0;
    this.statuses = new Map();
  }

  add(result) {
    this.statuses.set(result.status, (this.statuses.get(result.status) ?? 0) + 1);
    if (typeof result.score !== "number") return;
    this.scored += 1;
    this.sum += result.score;
    if (result.correct === undefined) return;
    this.verdicts += 1;
    this.right += Number(result.correct);
    this.uncertain += Number(Boolean(result.warnings?.includes("UNCERTAIN")));
  }

  get mean() { return this.scored ? this.sum / this.scored : NaN; }
  get shareRight() { return this.verdicts ? this.right / this.verdicts : NaN; }
}

class MetricSummary {
  constructor(asked) {
    this.label = asked.label;
    this.metric = asked.metric;
    this.tally = new Tally();
    this.bins = new Array(BINS).fill(0);
    this.lowest = [];
    this.highest = [];
    this.line = "";
  }

  add(result, row) {
    this.tally.add(result);
    this.line ||= result.line ?? "";
    if (typeof result.score !== "number") return;
    const { minimum, maximum } = this.metric;
    const share = (result.score - minimum) / (maximum - minimum || 1);
    this.bins[Math.min(BINS - 1, Math.max(0, Math.floor(share * BINS)))] += 1;
    const kept = { score: result.score, ...row };
    this.lowest = [...this.lowest, kept].sort((a, b) => a.score - b.score).slice(0, KEPT);
    this.highest = [...this.highest, kept].sort((a, b) => b.score - a.score).slice(0, KEPT);
  }
}

export class RunSummary {
  constructor(asked) {
    this.rows = 0;
    this.failed = 0;
    this.labelled = 0;
    this.metrics = asked.map((one) => new MetricSummary(one));
    this.groups = new Map();
    this.groupsLeftOut = false;
  }

  add({ item, more, row, scores }) {
    this.rows += 1;
    this.labelled += Number(more.label !== undefined || more.labels !== undefined);
    this.failed += Number(Object.values(scores).some((result) => result.status !== "OK"));
    const shown = {
      id: item?.id ?? row.place,
      prediction: (item?.prediction ?? "").slice(0, SHOWN_CHARACTERS),
      reference: (item?.references?.[0] ?? "").slice(0, SHOWN_CHARACTERS),
    };
    const group = this.#group([more.model, item?.group].filter((name) => typeof name === "string" && name).join(" / "));
    for (const metric of this.metrics) {
      metric.add(scores[metric.label], shown);
      group?.get(metric.label).add(scores[metric.label]);
    }
  }

  #group(name) {
    if (!name) return null;
    if (!this.groups.has(name)) {
      if (this.groups.size === MOST_GROUPS) { this.groupsLeftOut = true; return null; }
      this.groups.set(name, new Map(this.metrics.map((metric) => [metric.label, new Tally()])));
    }
    return this.groups.get(name);
  }
}
