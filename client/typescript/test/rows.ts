import type { MessageInitShape } from "@bufbuild/protobuf";

import { type ItemSchema, metric } from "../src/index.js";

export type Row = MessageInitShape<typeof ItemSchema>;

export const ITEMS: Row[] = [
  { id: "right", question: "What sleeps?", references: ["cat", "a cat"], prediction: "A small cat sleeps there." },
  { id: "wrong", question: "What sleeps?", references: ["cat"], prediction: "A dog." },
  { id: "日本", question: "首都は?", references: ["東京"], prediction: "東京 — naïve 🐈\u200d⬛" },
  { id: "empty", references: ["cat"], prediction: " " },
];

/** A lexical and an embedding metric. */
export const METRICS = [metric("exactMatch"), metric("smile")];

/** Distinct items that need no encoder, numbered. */
export function* numbered(count: number): Generator<Row> {
  for (let number = 0; number < count; number += 1) {
    yield { id: `${number}`, references: [`reference ${number % 10}`], prediction: `reference ${number % 7}` };
  }
}
