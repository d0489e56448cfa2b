// A run's output: rows in the formats of `gradewire score` (JSONL, CSV), and rows with scores for the report.

const PIECE_CHARACTERS = 1 << 20;

/** Lines of text. Every megabyte of them becomes a Blob, which the browser may keep on disk. */
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
  /** `maxReportBytes`: maximum size of a report's labelled rows; above it they are dropped. */
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

/** Returns a CSV cell. An apostrophe is put before text that a spreadsheet would run as a formula. */
export function cell(value) {
  if (value === null || value === undefined) return "";
  const text = typeof value === "string" && /^[=+\-@\t\r\n＝＋－＠]/.test(value) ? `'${value}` : String(value);
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
