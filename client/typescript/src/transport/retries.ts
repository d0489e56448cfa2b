import { Code } from "@connectrpc/connect";

import { GradewireError } from "../errors.js";

const FIRST_WAIT_MS = 100;
const LONGEST_WAIT_MS = 2_000;
// Random addition to each wait, so that a restarting server's clients do not return all at once.
const JITTER = 0.2;
// An attempt with less time left cannot succeed.
const TOO_LATE_MS = 50;

/** The retries of one call: it is repeated after temporary failures, until the deadline. */
export class Retries {
  #failures = 0;
  #failingSinceMs = 0;

  /** @param leftMs A function that returns the milliseconds until the deadline; Infinity means no deadline. */
  constructor(private readonly leftMs: () => number) {}

  /** Records an answer. The next failure counts as the first again. */
  progressed(): void {
    this.#failures = 0;
  }

  /** Waits until the next attempt. Throws the error if a retry cannot help or would be too late. */
  async waitAfter(error: GradewireError, signal: AbortSignal | undefined): Promise<void> {
    if (!error.mayPass) {
      throw error;
    }
    if (this.#failures === 0) {
      this.#failingSinceMs = performance.now();
    }
    this.#failures += 1;
    const waitMs = this.#waitMs(error);
    if (waitMs + TOO_LATE_MS > this.leftMs()) {
      const passedS = ((performance.now() - this.#failingSinceMs) / 1_000).toFixed(1);
      const times = this.#failures === 1 ? "once" : `${this.#failures} times`;
      throw error.with({}, `; tried ${times} in ${passedS} s`);
    }
    await sleep(waitMs, signal);
  }

  #waitMs(error: GradewireError): number {
    const grownMs = Math.min(FIRST_WAIT_MS * 2 ** Math.min(this.#failures - 1, 10), LONGEST_WAIT_MS);
    return (error.retryAfterMs ?? grownMs) * (1 + JITTER * Math.random());
  }
}

function sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      clearTimeout(timer);
      reject(new GradewireError("cancelled by the caller", Code.Canceled, { cause: signal?.reason }));
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, ms);
    if (signal?.aborted) {
      stop();
    } else {
      signal?.addEventListener("abort", stop, { once: true });
    }
  });
}
