// A list of text boxes that users can extend, for references and answers.

import { el } from "./dom.js";

export class TextList {
  /** `place`: the fieldset; `what`: "reference"; `rows`: height of each box. */
  constructor(place, what, rows) {
    this.what = what;
    this.rows = rows;
    this.items = el("ol", { class: "plain texts" });
    this.add = el("button", { type: "button", class: "small", onclick: () => this.#append("").focus() }, `Add ${what}`);
    place.append(this.items, this.add);
    this.set([""]);
  }

  #boxes() {
    return [...this.items.querySelectorAll("textarea")];
  }

  /** All texts, including empty ones. */
  get texts() {
    return this.#boxes().map((box) => box.value);
  }

  set(texts) {
    this.items.replaceChildren();
    for (const text of texts) this.#append(text);
  }

  #append(text) {
    const box = el("textarea", { rows: this.rows, spellcheck: "false", value: text });
    const remove = el("button", { type: "button", class: "small" }, "Remove");
    const item = el("li", {}, box, remove);
    remove.addEventListener("click", () => {
      const beside = item.nextElementSibling ?? item.previousElementSibling;
      item.remove();
      this.#name();
      (beside?.querySelector("textarea") ?? this.add).focus();
    });
    this.items.append(item);
    this.#name();
    return box;
  }

  #name() {
    const all = [...this.items.children];
    all.forEach((item, at) => {
      const [box, remove] = [item.querySelector("textarea"), item.querySelector("button")];
      box.setAttribute("aria-label", `${this.what[0].toUpperCase()}${this.what.slice(1)} ${at + 1}`);
      remove.setAttribute("aria-label", `Remove ${this.what} ${at + 1}`);
      remove.hidden = all.length === 1;
    });
  }
}
