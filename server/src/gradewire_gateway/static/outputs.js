// What a run writes: rows as `gradewire score` writes them (JSONL, CSV), and rows with their scores for the report.

const PIECE_CHARACTERS = 1 << 20;

/** Lines that are handed to the browser as a Blob every megabyte, which it may keep on disk. */
export class Lines {
  constructor() {
    this.blobs = [];
    this.open = [];
    this.characters = 0;
    this.bytes = 0;
  }

  add(line) {
    this.open.push(line, "\n");
    this.characters += line.length + 1;
    if (this.characters > PIECE_CHARACTERS) this.#close();
  }

  #close() {
    const blob = new Blob(this.open);
    this.bytes += blob.size;
    this.blobs.push(blob);
    [this.open, this.characters] = [[], 0];
  }

  blob(type) {
    if (this.open.length) this.#close();
    return new Blob(this.blobs, { type });
  }
}

export class Outputs {
  /** `maxReportBytes`: more of labelled rows are let go, for no report takes them. */
  constructor(labels, maxReportBytes) {
    this.labels = labels;
    this.maxReportBytes = maxReportBytes;
    this.tooManyForReport = false;
    this.jsonl = new Lines();
    this.csv = new Lines();
    this.report = new Lines();
    this.reported = 0;
    this.csv.add(["index", "id", ...labels.flatMap((label) => [label, `${label} status`, `${label} correct`, `${label} message`])].map(cell).join(","));
  }

  add({ row, item, more, scores }) {
    const id = item?.id ?? String(row.index);
    this.jsonl.add(JSON.stringify({ id, index: row.index, scores }));
    const cells = this.labels.flatMap((label) => {
      const result = scores[label];
      return [result.score, result.status, result.correct, result.message];
    });
    this.csv.add([row.index, id, ...cells].map(cell).join(","));
    if (item && (more.label !== undefined || more.labels !== undefined)) {
      this.reported += 1;
      if (!this.tooManyForReport) this.report.add(JSON.stringify({ row: { ...item, ...more }, scores }));
      if (this.report.bytes + this.report.characters > this.maxReportBytes) [this.tooManyForReport, this.report] = [true, new Lines()];
    }
  }
}

/** A cell of CSV. A text that a spreadsheet would take for a formula gets an apostrophe before it. */
export function cell(value) {
  if (value === null || value === undefined) return "";
  const text = typeof value === "string" && /^[=+\-@\t\r\n＝＋－＠]/.test(value) ? `'${value}` : String(value);
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
