// Names under which the fields of a row are found, as `gradewire score` finds them; the first with a value wins.
// A test holds this table against the client's own.

export const ALIASES = {
  id: ["id"],
  question: ["question"],
  references: ["references", "reference", "answers", "answer", "golden_answer"],
  prediction: ["prediction", "pred", "response", "candidate"],
  synthetic_answers: ["synthetic_answers", "syn_ans"],
  caption: ["caption"],
  captions: ["captions"],
  group: ["group", "dataset"],
  label: ["label", "human_score"],
  labels: ["labels", "annotations"],
  question_id: ["question_id"],
  dataset: ["dataset", "group"],
  model: ["model"],
};

export const LISTS = ["references", "synthetic_answers", "captions"];
export const ITEM_FIELDS = ["question", "references", "prediction", "synthetic_answers", "caption", "captions", "group"];

/** Which column each field is read from, by the names of the columns: {field: [column, …]}. */
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
