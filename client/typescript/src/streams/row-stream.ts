import { setInterval } from "node:timers";

import { Code } from "@connectrpc/connect";

import { GradewireError } from "../errors.js";
import { Retries } from "../transport/retries.js";
import { Condition } from "./condition.js";

// Every server accepts messages up to this size. A single larger row is sent alone.
const MESSAGE_ROWS = 32;
const MESSAGE_BYTES = 256 * 1_024;
const AHEAD_ROWS = 256;
const STALL_MS = 60_000;

/** Options for a stream. */
export interface StreamOptions {
  /** Maximum number of rows to read ahead of the results that you have consumed; 256 by default. */
  readonly aheadRows?: number;
  /**
   * Maximum milliseconds to wait for the next result while rows are in progress, including retries; 60 000 by default.
   * Use more with a judge.
   */
  readonly stallMs?: number;
  /** Signal that ends the stream, as if you left the loop. */
  readonly signal?: AbortSignal;
}

/** The calls and conversions that one type of stream needs. */
export interface RowCalls<Row, Request, Reply, Result> {
  /** Opens a connection. */
  open(requests: AsyncIterable<Request>, signal: AbortSignal): AsyncIterable<Reply>;
  /** Returns the first request. */
  first(): Request;
  /** Returns a request with these rows. */
  rows(rows: Row[]): Request;
  /** Returns a row's size on the wire, in bytes. */
  sizeBytes(row: Row): number;
  /** Returns the row parts in a reply. Their `number` is the row's position in the connection. */
  parts(reply: Reply): Iterable<RowPart<Result>>;
  /** Combines all parts of a row, in order of arrival, into the row's result. */
  result(index: number, first: Result, others: Result[]): Result;
}

/** A row's result, or a part of that result. */
export interface RowPart<Result> {
  readonly number: number;
  readonly part: Result;
  readonly complete: boolean;
}

interface OpenRow<Row, Result> {
  readonly row: Row;
  parts: Result[];
}

/** One connection of a stream. */
interface Connection {
  /** Indices of the rows sent, in order. */
  readonly sent: number[];
  /** True after the server's first message. Rows are sent only after that. */
  accepted: boolean;
  over: boolean;
}

/** A stream that sends rows with bounded memory, yields results as they finish, and resumes if a connection breaks. */
export class RowStream<Row, Request, Reply, Result> {
  readonly #changed = new Condition();
  readonly #open = new Map<number, OpenRow<Row, Result>>();
  readonly #ending = new AbortController();
  readonly #aheadRows: number;
  readonly #stallMs: number;
  readonly #retries: Retries;
  #unsent: number[] = [];
  #done: Result[] = [];
  #taken = 0;
  #read = 0;
  #exhausted = false;
  #finished = false;
  #everAccepted = false;
  #failure: { readonly error: unknown } | undefined;
  #activeAtMs = performance.now();

  constructor(
    private readonly source: Iterable<Row> | AsyncIterable<Row>,
    private readonly calls: RowCalls<Row, Request, Reply, Result>,
    options: StreamOptions,
  ) {
    this.#aheadRows = Math.max(1, options.aheadRows ?? AHEAD_ROWS);
    this.#stallMs = options.stallMs ?? STALL_MS;
    this.#retries = new Retries(() => this.#leftMs());
    const signal = options.signal;
    const stop = (): void => this.#fail(new GradewireError("cancelled by the caller", Code.Canceled));
    if (signal?.aborted) {
      stop();
    }
    signal?.addEventListener("abort", stop, { once: true, signal: this.#ending.signal });
  }

  /** Runs the stream and yields results in any order. Leaving the loop ends the call. */
  async *run(): AsyncGenerator<Result, void, undefined> {
    const watch = setInterval(() => this.#watch(), Math.min(1_000, this.#stallMs / 4));
    // The timer must not keep the process alive if the caller abandons the loop.
    watch.unref();
    const work = [this.#readSource(), this.#converse()].map((part) => part.catch((error) => this.#fail(error)));
    try {
      for (;;) {
        await this.#changed.until(() => this.#done.length > 0 || this.#finished || this.#failure !== undefined);
        for (const result of this.#done.splice(0)) {
          yield result;
          this.#taken += 1;
          this.#changed.notify();
        }
        if (this.#failure !== undefined) {
          throw this.#failure.error;
        }
        if (this.#finished && this.#done.length === 0) {
          break;
        }
      }
    } finally {
      clearInterval(watch);
      this.#ending.abort();
      this.#changed.notify();
    }
    await Promise.all(work);
  }

  get #ended(): boolean {
    return this.#ending.signal.aborted || this.#failure !== undefined;
  }

  async #readSource(): Promise<void> {
    for await (const row of this.source) {
      await this.#changed.until(() => this.#read - this.#taken < this.#aheadRows || this.#ended);
      if (this.#ended) {
        return;
      }
      if (this.#open.size === 0) {
        this.#activeAtMs = performance.now();
      }
      this.#open.set(this.#read, { row, parts: [] });
      this.#unsent.push(this.#read);
      this.#read += 1;
      this.#changed.notify();
    }
    this.#exhausted = true;
    this.#changed.notify();
  }

  async #converse(): Promise<void> {
    while (!this.#ended) {
      const connection: Connection = { sent: [], accepted: false, over: false };
      this.#unsent = [...this.#open.keys()].sort((one, other) => one - other);
      try {
        await this.#exchange(connection);
        break;
      } catch (error) {
        if (this.#ended || (this.#exhausted && this.#open.size === 0 && connection.accepted)) {
          break;
        }
        for (const row of this.#open.values()) {
          row.parts = [];
        }
        await this.#retries.waitAfter(resumable(error), this.#ending.signal);
      } finally {
        connection.over = true;
        this.#changed.notify();
      }
    }
    this.#finished = true;
    this.#changed.notify();
  }

  async #exchange(connection: Connection): Promise<void> {
    const stop = new AbortController();
    const signal = AbortSignal.any([stop.signal, this.#ending.signal]);
    try {
      for await (const reply of this.calls.open(this.#requests(connection), signal)) {
        connection.accepted = this.#everAccepted = true;
        for (const { number, part, complete } of this.calls.parts(reply)) {
          this.#take(connection, number, part, complete);
        }
        this.#changed.notify();
      }
    } finally {
      stop.abort();
    }
    if (this.#open.size > 0 || !this.#exhausted) {
      throw new GradewireError(`the stream ended with ${this.#open.size} rows unanswered`, Code.Internal);
    }
  }

  async *#requests(connection: Connection): AsyncGenerator<Request> {
    const over = (): boolean => connection.over || this.#ended;
    yield this.calls.first();
    await this.#changed.until(() => connection.accepted || over());
    while (!over()) {
      await this.#changed.until(() => this.#unsent.length > 0 || this.#exhausted || over());
      // Wait for one turn of the event loop, so that rows which are ready share a message.
      await new Promise((resolve) => setTimeout(resolve, 0));
      while (this.#unsent.length > 0 && !over()) {
        const indices = this.#nextMessage();
        connection.sent.push(...indices);
        yield this.calls.rows(indices.map((index) => this.#rowOf(index)));
      }
      if (this.#exhausted && this.#unsent.length === 0) {
        return;
      }
    }
  }

  #nextMessage(): number[] {
    let bytes = 0;
    let rows = 0;
    for (const index of this.#unsent.slice(0, MESSAGE_ROWS)) {
      bytes += this.calls.sizeBytes(this.#rowOf(index));
      if (rows > 0 && bytes > MESSAGE_BYTES) {
        break;
      }
      rows += 1;
    }
    return this.#unsent.splice(0, rows);
  }

  #rowOf(index: number): Row {
    return this.#openRow(index).row;
  }

  #openRow(index: number | undefined): OpenRow<Row, Result> {
    const row = index === undefined ? undefined : this.#open.get(index);
    if (row === undefined) {
      throw new GradewireError("the server answered an unknown row: report it", Code.Internal);
    }
    return row;
  }

  #take(connection: Connection, number: number, part: Result, complete: boolean): void {
    const index = connection.sent[number];
    const row = this.#openRow(index);
    this.#activeAtMs = performance.now();
    if (!complete || index === undefined) {
      row.parts.push(part);
      return;
    }
    const [first = part, ...others] = [...row.parts, part];
    this.#open.delete(index);
    this.#done.push(this.calls.result(index, first, others));
    this.#retries.progressed();
  }

  #leftMs(): number {
    if (this.#open.size === 0 && this.#everAccepted) {
      return this.#stallMs; // time counts only while rows are in progress
    }
    return this.#activeAtMs + this.#stallMs - performance.now();
  }

  #watch(): void {
    if (this.#open.size > 0 && this.#leftMs() <= 0) {
      const message = `no result for ${this.#stallMs} ms while ${this.#open.size} rows were in progress: check the server`;
      this.#fail(new GradewireError(message, Code.DeadlineExceeded));
    }
  }

  #fail(error: unknown): void {
    this.#failure ??= { error };
    this.#ending.abort();
    this.#changed.notify();
  }
}

/** Marks a timeout as retryable, because a server that ends a stream at its own deadline keeps finished work. */
function resumable(reason: unknown): GradewireError {
  const error = GradewireError.from(reason);
  return error.code === Code.DeadlineExceeded ? error.with({ mayPass: true }) : error;
}
