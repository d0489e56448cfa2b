/** Something that several loops wait for; who changes it wakes them all. */
export class Condition {
  #wake: () => void = () => {};
  #changed: Promise<void> = this.#next();

  /** Wakes all that wait. */
  notify(): void {
    this.#wake();
    this.#changed = this.#next();
  }

  /** Waits until `met` is true; looks again after each `notify`. */
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
