// The view of the server's current load. It asks the server only while users can see the view.

import { SNAPSHOT, call } from "./api.js";
import { lineChart } from "./charts.js";
import { announce, byId, el, visible } from "./dom.js";
import { amount, count, duration, percent, size } from "./numbers.js";

const EVERY_MS = 2000;
const POINTS = 90;
const ANNOUNCE_EVERY_MS = 60_000;

export class LiveView {
  constructor(access) {
    this.access = access;
    this.paused = false;
    this.shown = false;
    this.before = null;
    this.asking = false;
    this.timer = null;
    this.announced = 0;
    this.series = { calls: [], items: [], half: [], most: [], inFlight: [], hits: [] };
    this.charts = {
      load: lineChart("Load: calls and items a second", amount),
      latency: lineChart("Latency of calls", duration),
      flight: lineChart("Items in work", amount),
      cache: lineChart("Share of texts answered from a cache", percent, 1),
    };
    byId("live-charts").replaceChildren(...Object.values(this.charts).map((chart) => chart.node));
    byId("live-pause").addEventListener("click", () => { this.paused = !this.paused; this.#turn(); });
    document.addEventListener("visibilitychange", () => this.#turn());
    this.#draw();
  }

  /** Starts or stops the view, when it is shown or hidden. */
  show(is) {
    this.shown = is;
    this.#turn();
  }

  #turn() {
    const button = byId("live-pause");
    button.setAttribute("aria-pressed", String(this.paused));
    button.textContent = this.paused ? "Continue" : "Pause";
    if (this.access.figures) {
      button.hidden = true;
      byId("live-error").textContent = `This token may not see the server's statistics (403): ${this.access.figures}`;
      return;
    }
    const runs = this.shown && !this.paused && !document.hidden;
    byId("live-state").textContent = this.paused ? "Paused." : `Updated every ${EVERY_MS / 1000} s while you see this view.`;
    clearTimeout(this.timer);
    if (!runs) this.before = null;  // a rate that includes a pause would not be current
    else this.#look();
  }

  async #look() {
    if (this.asking) return;
    this.asking = true;
    try {
      const now = await call(SNAPSHOT, {}, { timeoutMs: 5000 });
      byId("live-error").textContent = "";
      this.#take(now);
    } catch (error) {
      byId("live-error").textContent = visible(error.said ?? error.message);
      this.before = null;
      if (error.status === 403 || error.status === 401 || error.status === 501) { this.paused = true; this.asking = false; this.#turn(); return; }
    }
    this.asking = false;
    if (this.shown && !this.paused && !document.hidden) this.timer = setTimeout(() => this.#look(), EVERY_MS);
  }

  #take(now) {
    const rates = this.before ? ratesOf(this.before, now) : null;
    this.before = now;
    const push = (name, value) => { this.series[name] = [...this.series[name], value].slice(-POINTS); };
    push("calls", rates?.callsPerS ?? NaN);
    push("items", rates?.itemsPerS ?? NaN);
    push("half", rates?.half ?? NaN);
    push("most", rates?.most ?? NaN);
    push("hits", rates?.hits ?? NaN);
    push("inFlight", now.itemsInFlight ?? 0);
    this.#draw();
    this.#table(now, rates);
  }

  #draw() {
    const { series, charts } = this;
    charts.load.show([{ name: "calls", values: series.calls }, { name: "items", values: series.items }], POINTS);
    charts.latency.show([{ name: "half within", values: series.half }, { name: "95 % within", values: series.most }], POINTS);
    charts.flight.show([{ name: "items", values: series.inFlight }], POINTS);
    charts.cache.show([{ name: "from a cache", values: series.hits }], POINTS);
  }

  #table(now, rates) {
    const texts = now.textsBySource ?? {};
    const rows = [
      ["State", [now.phase ?? "unknown", ...(now.degraded ?? [])].join("; ")],
      ["Calls since the start", count(Number(now.calls ?? 0))],
      ["Calls that failed", count(Number(now.failedCalls ?? 0))],
      ["Calls in flight", count(now.callsInFlight ?? 0)],
      ["Items since the start", count(Number(now.items ?? 0))],
      ["A small request would wait", duration(now.admissionWaitS ?? 0)],
      ["Refusing small requests for", duration(now.overloadS ?? 0)],
      ["Waiting for a judge", count(now.judgeQueueItems ?? 0)],
      ["Memory of the process", Number(now.residentBytes ?? 0) ? size(Number(now.residentBytes)) : "not reported by this system"],
      ["Cache in memory", size(Number(now.cacheBytes ?? 0))],
      ["Texts since the start", Object.entries(texts).sort().map(([source, times]) => `${source} ${count(Number(times))}`).join(", ") || "none"],
    ];
    byId("live-table").replaceChildren(el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Server statistics" },
      el("table", {}, el("caption", {}, "Server statistics"),
        el("tbody", {}, rows.map(([name, value]) => el("tr", {}, el("th", { scope: "row" }, name), el("td", {}, visible(value))))))));
    if (rates && performance.now() - this.announced > ANNOUNCE_EVERY_MS) {
      this.announced = performance.now();
      announce(`${amount(rates.callsPerS)} calls a second, half within ${duration(rates.half)}, ${percent(rates.hits)} of texts from a cache`);
    }
  }
}

/** Returns the rates between two snapshots; NaN for a rate without data. */
export function ratesOf(before, now) {
  const spent = now.atS - before.atS;
  const since = (name) => Number(now[name] ?? 0) - Number(before[name] ?? 0);
  if (!(spent > 0) || since("calls") < 0) return { callsPerS: NaN, itemsPerS: NaN, half: NaN, most: NaN, hits: NaN };
  const counts = (now.latencyCounts ?? []).map((count, at) => Number(count) - Number(before.latencyCounts?.[at] ?? 0));
  const texts = Object.entries(now.textsBySource ?? {}).map(([source, count]) => [source, Number(count) - Number(before.textsBySource?.[source] ?? 0)]);
  const all = texts.reduce((sum, [, count]) => sum + count, 0);
  const computed = texts.filter(([source]) => source === "computed").reduce((sum, [, count]) => sum + count, 0);
  return {
    callsPerS: since("calls") / spent,
    itemsPerS: since("items") / spent,
    half: quantile(now.latencyBoundsS ?? [], counts, 0.5),
    most: quantile(now.latencyBoundsS ?? [], counts, 0.95),
    hits: all ? (all - computed) / all : NaN,
  };
}

/** Returns a quantile of a histogram with `counts` per bucket; the last bucket is above the last bound. */
export function quantile(bounds, counts, share) {
  const all = counts.reduce((sum, count) => sum + count, 0);
  if (!all) return NaN;
  let below = 0;
  for (let at = 0; at < bounds.length; at += 1) {
    if (below + counts[at] >= share * all) {
      const from = at ? bounds[at - 1] : 0;
      return from + (bounds[at] - from) * ((share * all - below) / counts[at]);
    }
    below += counts[at];
  }
  return bounds.at(-1) ?? NaN;
}
