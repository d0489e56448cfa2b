/** A condition that several loops wait for. Whoever changes it wakes them all. */
export class Condition {
  #wake: () => void = () => {};
  #changed: Promise<void> = this.#next();

  /** Wakes all waiting loops. */
  notify(): void {
    this.#wake();
    this.#changed = this.#next();
  }

  /** Waits until `met` is true, and checks again after each `notify`. */
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
