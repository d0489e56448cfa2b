// Scores a file's rows in batches, with a few batches in flight; results come in the order of the rows.

import { SCORE, call } from "./api.js";
import { flatResult } from "./catalog.js";
import { UnreadableValueError, itemOf } from "./values.js";

const BATCH_ROWS = 32;
const BATCH_CHARACTERS = 500_000;
const IN_FLIGHT = 2;
const TRIES = 6;
const MOST_PAUSE_S = 30;
const PASSING = new Set([0, 408, 429, 503]);
const FATAL = new Set([401, 403, 404, 421, 501]);

/**
 * Scores rows and yields {row, item, more, scores} in the order of the rows. `scores` contains a flat result by label.
 * Args: `rows`, from `rowsOf`; `columns`, from `mapped`; `asked`, from the chooser; `signal`, to cancel;
 * `onPause`, called with the seconds that the run waits for the server, and the reason.
 * Throws ProblemError if no row can be scored (because of a token or a metric), and AbortError after a cancellation.
 */
export async function* scored(rows, { columns, asked, catalog, signal, onPause = () => {} }) {
  const context = { asked, catalog, signal, onPause, specs: asked.map((one) => one.spec) };
  const waiting = [];
  for await (const batch of batches(rows, columns)) {
    const answer = answerOf(batch, context);
    answer.catch(() => {});  // the error is thrown later, when this batch is awaited
    waiting.push(answer);
    if (waiting.length >= IN_FLIGHT) yield* await waiting.shift();
  }
  while (waiting.length) yield* await waiting.shift();
}

async function* batches(rows, columns) {
  let batch = [];
  let characters = 0;
  for await (const row of rows) {
    const read = readRow(row, columns);
    batch.push(read);
    characters += read.item ? JSON.stringify(read.item).length : 0;
    if (batch.length === BATCH_ROWS || characters > BATCH_CHARACTERS) {
      yield batch;
      [batch, characters] = [[], 0];
    }
  }
  if (batch.length) yield batch;
}

function readRow(row, columns) {
  if (!row.fields) return { row, item: null, more: {}, problem: `${row.place} ${row.problem}` };
  try {
    return { row, ...itemOf(row.fields, columns, row.index), problem: "" };
  } catch (error) {
    if (!(error instanceof UnreadableValueError)) throw error;
    return { row, item: null, more: {}, problem: `${row.place}: ${error.message}` };
  }
}

async function answerOf(batch, context) {
  const sent = batch.filter((one) => one.item);
  const results = sent.length ? await resultsOf(sent.map((one) => one.item), context) : [];
  const bySent = new Map(sent.map((one, at) => [one, results[at]]));
  return batch.map((one) => ({
    ...one, scores: bySent.get(one) ?? failed(context.asked, "INVALID_INPUT", one.problem),
  }));
}

/** Returns flat results by label for each item; if the server refuses an item, only this item fails. */
async function resultsOf(items, context) {
  try {
    const reply = await asking(items, context);
    const provenance = reply.provenance ?? [];
    return (reply.items ?? []).map((item) => Object.fromEntries((item.results ?? []).map((result) => {
      const place = result.metricIndex ?? 0;
      return [context.asked[place].label, flatResult(result, provenance[place], context.catalog)];
    })));
  } catch (error) {
    if (context.signal.aborted || FATAL.has(error.status) || error.status === undefined) throw error;
    if (items.length === 1) return [failed(context.asked, PASSING.has(error.status) ? "UNAVAILABLE" : "INVALID_INPUT", error.message)];
    if (PASSING.has(error.status)) throw error;
    // Halve the batch to find the item at fault, or a size that the server accepts.
    const middle = items.length >> 1;
    return [...await resultsOf(items.slice(0, middle), context), ...await resultsOf(items.slice(middle), context)];
  }
}

async function asking(items, { specs, signal, onPause }) {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await call(SCORE, { items, metrics: specs, priority: "PRIORITY_BULK", omitDiagnostics: true }, { signal });
    } catch (error) {
      if (signal.aborted || !PASSING.has(error.status) || attempt === TRIES) throw error;
      const pauseS = Math.min(MOST_PAUSE_S, error.retryAfterS ?? 2 ** (attempt - 1)) * (0.8 + 0.4 * Math.random());
      onPause(pauseS, error.message);
      await pause(pauseS, signal);
    }
  }
}

function pause(seconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, seconds * 1000);
    signal.addEventListener("abort", () => { clearTimeout(timer); reject(signal.reason); }, { once: true });
  });
}

function failed(asked, status, message) {
  return Object.fromEntries(asked.map((one) => [one.label, { score: null, status, message }]));
}
