// Reads a file's rows in pieces, so that a large file needs no more memory than a small file.

const DELIMITERS = [",", ";", "\t", "|"];
const MISSING = new Set(["nan", "NaN", "<NA>", "NaT", "NULL", "\\N", "#N/A"]);
const ONE_ARRAY = "the file is one JSON array: write one object per line (JSONL)";
const MAX_ROW_CHARACTERS = 4_000_000;

/** An error after which the rest of the file cannot be read; the message contains the reason. */
export class UnreadableFileError extends Error {}

/**
 * Yields a file's rows: {index, place, fields, problem}; `fields` is null if the row cannot be read.
 * `known`: column names from which the delimiter of a table is guessed.
 * `onBytes` is called with the number of bytes read so far.
 */
export async function* rowsOf(file, known, onBytes = () => {}) {
  const table = /\.(csv|tsv)$/i.test(file.name) || (!/\.(jsonl|ndjson|json)$/i.test(file.name) && !/^\s*[{[]/.test(await file.slice(0, 64).text()));
  yield* table ? tableRows(file, known, onBytes) : lineRows(file, onBytes);
}

async function* lineRows(file, onBytes) {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let index = 0;
  let number = 0;
  for await (const bytes of byteLines(file, onBytes)) {
    number += 1;
    const place = `line ${number}`;
    const row = lineRow(decoder, bytes, number);
    if (row) {
      yield { index, place, ...row };
      index += 1;
    }
  }
}

function lineRow(decoder, bytes, number) {
  if (bytes === null) return { fields: null, problem: `is longer than ${MAX_ROW_CHARACTERS} bytes` };
  let text;
  try {
    text = decoder.decode(bytes).trim();
  } catch {
    return { fields: null, problem: "is not UTF-8" };
  }
  if (!text) return null;
  try {
    const fields = JSON.parse(text);
    if (number === 1 && Array.isArray(fields)) throw new UnreadableFileError(ONE_ARRAY);
    if (fields === null || typeof fields !== "object" || Array.isArray(fields)) return { fields: null, problem: "is not a JSON object" };
    return { fields, problem: "" };
  } catch (error) {
    if (error instanceof UnreadableFileError) throw error;
    if (number === 1 && text.startsWith("[")) throw new UnreadableFileError(ONE_ARRAY);
    return { fields: null, problem: `is not JSON: ${error.message}` };
  }
}

/** Yields lines as bytes; null for a line that is too long. */
async function* byteLines(file, onBytes) {
  let pieces = [];
  let held = 0;
  let done = 0;
  const joined = () => {
    const tooLong = held > MAX_ROW_CHARACTERS;
    const line = new Uint8Array(tooLong ? 0 : held);
    let at = 0;
    if (!tooLong) for (const piece of pieces) { line.set(piece, at); at += piece.length; }
    pieces = [];
    held = 0;
    return tooLong ? null : line;
  };
  const keep = (piece) => {
    held += piece.length;
    if (held <= MAX_ROW_CHARACTERS) pieces.push(piece);
    else pieces = [];
  };
  for await (const chunk of chunksOf(file.stream())) {
    let start = 0;
    for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, start)) {
      keep(chunk.subarray(start, end));
      yield joined();
      start = end + 1;
    }
    keep(chunk.slice(start));
    done += chunk.length;
    onBytes(done);
  }
  if (held) yield joined();
}

async function* chunksOf(stream) {
  const reader = stream.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    await reader.cancel();
  }
}

async function* tableRows(file, known, onBytes) {
  const cells = new CellReader();
  let header = null;
  let index = 0;
  for await (const text of textsOf(file, onBytes)) {
    for (const { values, line, problem } of cells.rows(text, (first) => delimiterOf(first, known))) {
      if (values.length === 1 && values[0] === "" && !problem) continue;
      if (!header) {
        header = headerOf(values);
        continue;
      }
      yield { index, place: `line ${line}`, ...tableRow(header, values, problem) };
      index += 1;
    }
  }
  if (!header) throw new UnreadableFileError("the file is empty");
  if (cells.left.trim()) yield { index, place: `line ${cells.line}`, fields: null, problem: "is not CSV: a quote is not closed" };
}

function headerOf(values) {
  const header = values.map((name, at) => name.replace(/[\ufeff\u200b\u2060]/g, "").trim() || `column ${at + 1}`);
  const twice = header.find((name, at) => header.indexOf(name) !== at);
  if (twice !== undefined) throw new UnreadableFileError(`the header has two columns ${twice}: rename or remove one of them`);
  return header;
}

function tableRow(header, values, problem) {
  if (problem) return { fields: null, problem };
  if (values.length !== header.length) return { fields: null, problem: `has ${values.length} cells, but the header has ${header.length}` };
  return { fields: Object.fromEntries(header.map((name, at) => [name, MISSING.has(values[at].trim()) ? null : values[at]])), problem: "" };
}

async function* textsOf(file, onBytes) {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let done = 0;
  const decoded = (chunk, options) => {
    try {
      return decoder.decode(chunk, options);
    } catch {
      throw new UnreadableFileError(`the file is not UTF-8 (near byte ${done}): save it as UTF-8`);
    }
  };
  for await (const chunk of chunksOf(file.stream())) {
    yield decoded(chunk, { stream: true });
    done += chunk.length;
    onBytes(done);
  }
  yield `${decoded(undefined, {})}\n`;
}

/** Returns the delimiter that finds the most known columns in the header; a comma if no other finds more. */
export function delimiterOf(header, known) {
  const names = new Set(known);
  let best = [",", -1, -1];
  for (const delimiter of DELIMITERS) {
    const cells = header.split(delimiter).map((name) => name.trim().replace(/^"(.*)"$/s, "$1").toLowerCase());
    const hits = cells.filter((name) => names.has(name)).length;
    const width = delimiter === "|" ? 0 : cells.length;
    if (hits > best[1] || (hits === best[1] && width > best[2])) best = [delimiter, hits, width];
  }
  return best[0];
}

/** A reader of CSV cells (RFC 4180) from pieces of text that may end anywhere. */
export class CellReader {
  #rest = "";
  #line = 1;
  #delimiter = "";

  /** The text of the last row, which is not complete yet. */
  get left() { return this.#rest; }

  /** The number of the line on which the next row starts. */
  get line() { return this.#line; }

  /** Yields the rows that are complete: {values, line, problem}. `choose` returns the delimiter for the first line. */
  *rows(text, choose) {
    let whole = this.#rest + text;
    if (!this.#delimiter) {
      const end = whole.indexOf("\n");
      if (end === -1) { this.#rest = whole; return; }
      whole = whole.replace(/^\ufeff/, "");
      this.#delimiter = choose(whole.slice(0, whole.indexOf("\n")));
    }
    let start = 0;
    for (;;) {
      const row = this.#row(whole, start);
      if (!row) break;
      yield { values: row.values, line: this.#line, problem: row.problem };
      this.#line += row.lines;
      start = row.end;
    }
    this.#rest = whole.slice(start);
    if (this.#rest.length > MAX_ROW_CHARACTERS) throw new UnreadableFileError(`the row at line ${this.#line} does not end: close the quotes in it`);
  }

  #row(text, start) {
    const values = [];
    let lines = 1;
    let problem = "";
    let at = start;
    for (;;) {
      let value = "";
      if (text[at] === '"') {
        for (at += 1; ;) {
          const quote = text.indexOf('"', at);
          if (quote === -1 || quote + 1 >= text.length) return null;
          value += text.slice(at, quote);
          at = quote + 1;
          if (text[at] !== '"') break;
          value += '"';
          at += 1;
        }
        lines += value.split("\n").length - 1;
      }
      const from = at;
      while (at < text.length && text[at] !== this.#delimiter && text[at] !== "\n") at += 1;
      if (at >= text.length) return null;
      const bare = text.slice(from, at);
      if (value && bare.replace(/\r$/, "").trim()) problem = `is not CSV: text after a closing quote (${bare.slice(0, 20)})`;
      value += text[at] === "\n" ? bare.replace(/\r$/, "") : bare;
      values.push(value);
      at += 1;
      if (text[at - 1] === "\n") return { values, lines, end: at, problem };
    }
  }
}
