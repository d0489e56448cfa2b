// Column names for each field of a row, the same as in `gradewire score`; the first name with a value is used.
// A test compares this table with the client's.

export const ALIASES = {
  id: ["id"],
  question: ["question"],
  references: ["references", "reference", "answers", "answer", "golden_answer"],
  prediction: ["prediction", "pred", "response", "candidate"],
  synthetic_answers: ["synthetic_answers", "syn_ans"],
  caption: ["caption"],
  captions: ["captions"],
  answerable: ["answerable"],
  group: ["group", "dataset"],
  label: ["label", "human_score"],
  labels: ["labels", "annotations"],
  question_id: ["question_id"],
  dataset: ["dataset", "group"],
  model: ["model"],
};

export const LISTS = ["references", "synthetic_answers", "captions"];
export const ITEM_FIELDS = ["question", "references", "prediction", "synthetic_answers", "caption", "captions", "group"];

/** Returns the columns to read each field from, given all column names: {field: [column, …]}. */
export function mapped(columns, chosen = {}) {
  const alike = new Map([...columns].reverse().map((column) => [column.trim().toLowerCase(), column]));
  const found = {};
  for (const [field, names] of Object.entries(ALIASES)) {
    if (chosen[field]) found[field] = [chosen[field]];
    else {
      const exact = names.filter((name) => columns.includes(name));
      const near = names.map((name) => alike.get(name)).find(Boolean);
      found[field] = exact.length ? exact : near ? [near] : [];
    }
  }
  return found;
}
