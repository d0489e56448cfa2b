/** A condition that several loops wait for. Call `notify` after each change that may meet the condition. */
export class Condition {
  #wake: () => void = () => {};
  #changed: Promise<void> = this.#next();

  /** Wakes all waiting loops. */
  notify(): void {
    this.#wake();
    this.#changed = this.#next();
  }

  /** Waits until `met` returns true. Calls `met` again after each `notify`. */
  async until(met: () => boolean): Promise<void> {
    while (!met()) {
      await this.#changed;
    }
  }

  #next(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }
}
