// The view in which users type or paste a question, references and answers.

import { SCORE, call, signedIn } from "./api.js";
import { announce, byId, visible } from "./dom.js";
import { duration } from "./numbers.js";
import { answerCard } from "./results.js";
import { snippets } from "./snippets.js";
import { TextList } from "./text-list.js";

const EXAMPLE = {
  question: "What sleeps on the sill?",
  references: ["cat", "a small cat"],
  answers: ["A small cat 🐈 sleeps there.", "A small dog sleeps there."],
};

export class ScoreView {
  constructor(chooser) {
    this.chooser = chooser;
    this.references = new TextList(byId("references"), "reference", 1);
    this.answers = new TextList(byId("answers"), "answer", 3);
    this.stop = null;
    byId("score-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#score();
    });
    byId("score-form").addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
        event.preventDefault();
        this.#score();
      }
    });
    byId("score-cancel").addEventListener("click", () => this.stop?.abort());
    byId("example").addEventListener("click", () => {
      byId("question").value = EXAMPLE.question;
      this.references.set(EXAMPLE.references);
      this.answers.set(EXAMPLE.answers);
    });
  }

  #items() {
    const references = this.references.texts.filter((text) => text.trim());
    if (!references.length) throw new Error("enter at least one reference");
    const question = byId("question").value;
    const answers = this.answers.texts;
    return answers.map((prediction, at) => ({ id: `answer ${at + 1}`, question, references, prediction }));
  }

  async #score() {
    if (this.stop) return;
    const error = byId("score-error");
    error.textContent = "";
    let items;
    let asked;
    try {
      items = this.#items();
      asked = this.chooser.chosen();
    } catch (fault) {
      error.textContent = `Not scored: ${fault.message}.`;
      return;
    }
    this.#busy(true);
    const request = { items, metrics: asked.map((one) => one.spec) };
    const began = performance.now();
    try {
      const reply = await call(SCORE, request, { signal: this.stop.signal });
      this.#show(request, asked, reply, (performance.now() - began) / 1000);
    } catch (fault) {
      error.textContent = fault.name === "AbortError" ? "Cancelled; nothing was scored." : visible(`Not scored: ${fault.said ?? fault.message}`);
    } finally {
      this.#busy(false);
    }
  }

  #busy(is) {
    this.stop = is ? new AbortController() : null;
    const [button, cancel] = [byId("score-button"), byId("score-cancel")];
    button.setAttribute("aria-busy", String(is));
    button.textContent = is ? "Scoring …" : "Score";
    if (!is && document.activeElement === cancel) button.focus();
    cancel.hidden = !is;
  }

  #show(request, asked, reply, roundTripS) {
    const provenance = reply.provenance ?? [];
    byId("results").hidden = false;
    byId("results-time").textContent =
      `${duration(reply.serverS ?? 0)} in the server, ${duration(roundTripS)} for the round trip from this browser.`;
    byId("results-list").replaceChildren(...(reply.items ?? []).map((item, at) =>
      answerCard({ name: `Answer ${at + 1}`, item: request.items[at], results: item.results ?? [], asked, provenance, catalog: this.chooser.catalog })));
    byId("snippets").replaceChildren(snippets(request, provenance, signedIn()));
    byId("results").focus({ preventScroll: true });
    byId("results").scrollIntoView({ block: "start" });
    announce(`${request.items.length} answers scored by ${asked.length} metrics in ${duration(roundTripS)}`);
  }
}
