// Finds in the raw text the window that a metric reports in normal form, like the report of `gradewire agree`.
//
// The server returns words without positions. It lower-cases the text, deletes characters that are neither word
// characters nor white space, and replaces words by lemmas. Positions here are UTF-16 positions in the text in NFC.

const NEITHER_WORD_NOR_SPACE = /[^\p{L}\p{N}_\s]+/gu;
const RUN = /\S+/gu;
const WORD = /[\p{L}\p{N}_](?:\S*[\p{L}\p{N}_])?/u;
const MAX_WORDS = 1024;
const MAX_ALIGNED = 64;
const MAX_COMPARED = 64;
const LEAST_LIKENESS = 0.5;

/**
 * Finds the part of `text`, in NFC, that normalises to `window`.
 * Returns {start, end, exact}, half open, in UTF-16 code units; null if no part is similar.
 */
export function findWindow(text, window) {
  const { words, spans } = bareWords(text);
  const wanted = window.split(/\s+/u).filter(Boolean);
  if (!words.length || !wanted.length || wanted.length > words.length) return null;
  const places = words.length - wanted.length + 1;
  for (let start = 0; start < places; start += 1) {
    if (wanted.every((word, offset) => words[start + offset] === word)) {
      return { start: spans[start][0], end: spans[start + wanted.length - 1][1], exact: true };
    }
  }
  const aligned = wanted.slice(0, MAX_ALIGNED).map((word) => [...word].slice(0, MAX_COMPARED));
  const compared = words.map((word) => [...word.slice(0, 2 * MAX_COMPARED)].slice(0, MAX_COMPARED));
  let best = 0;
  let most = -1;
  for (let start = 0; start < places; start += 1) {
    let total = 0;
    aligned.forEach((word, offset) => { total += likeness(word, compared[start + offset]); });
    if (total > most) [best, most] = [start, total];
  }
  if (most < LEAST_LIKENESS * aligned.length) return null;
  return { start: spans[best][0], end: spans[best + wanted.length - 1][1], exact: false };
}

function bareWords(text) {
  const words = [];
  const spans = [];
  let runs = 0;
  for (const run of text.matchAll(RUN)) {
    runs += 1;
    if (runs > 4 * MAX_WORDS || words.length === MAX_WORDS) break;
    const bare = run[0].toLowerCase().replace(NEITHER_WORD_NOR_SPACE, "");
    const inside = WORD.exec(run[0]);
    if (bare && inside) {
      words.push(bare);
      spans.push([run.index + inside.index, run.index + inside.index + inside[0].length]);
    }
  }
  if (words.length) return { words, spans };
  for (const run of text.matchAll(RUN)) {
    if (words.length === MAX_WORDS) break;
    words.push(run[0].toLowerCase());
    spans.push([run.index, run.index + run[0].length]);
  }
  return { words, spans };
}

/** Returns the length of the common beginning as a share of the longer word, because inflection mostly changes ends. */
function likeness(lemma, word) {
  let common = 0;
  while (common < lemma.length && common < word.length && lemma[common] === word[common]) common += 1;
  return common / Math.max(lemma.length, word.length);
}
