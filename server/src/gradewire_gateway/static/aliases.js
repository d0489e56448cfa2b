// Column names for each field of a row, and the choice of a column for each field, as in `gradewire score`.
// A test compares both with the client's.

export const ALIASES = {
  id: ["id"],
  question: ["question", "query", "user_input", "problem"],
  references: [
    "references", "reference", "answers", "golden_answer", "golden_answers", "gold_answer", "gold_answers",
    "gold", "ground_truth", "ground_truths", "gt", "gts", "target", "targets", "expected", "expected_answer",
    "expected_output", "reference_answer", "reference_answers", "reference_output", "reference_outputs",
    "correct_answer", "correct_answers", "possible_answers", "ideal", "solution", "answer",
  ],
  prediction: [
    "prediction", "predictions", "pred", "response", "candidate", "model_answer", "model_output",
    "model_response", "predicted_answer", "generated_answer", "generated_text", "actual_output", "output",
    "outputs", "completion", "answer",
  ],
  synthetic_answers: ["synthetic_answers", "syn_ans"],
  caption: ["caption"],
  captions: ["captions"],
  answerable: ["answerable"],
  group: ["group", "family", "dataset"],
  label: ["label", "human_score"],
  labels: ["labels", "annotations"],
  question_id: ["question_id"],
  dataset: ["dataset", "group"],
  model: ["model"],
};

export const LISTS = ["references", "synthetic_answers", "captions"];
export const ITEM_FIELDS = ["question", "references", "prediction", "synthetic_answers", "caption", "captions", "group"];
export const CHOSEN_FIELDS = ["references", "prediction"];
const SHARED = ALIASES.references.filter((name) => ALIASES.prediction.includes(name));

// "Ground Truth", "groundTruth" and "ground-truth" are ground_truth.
const spelled = (name) => name.replace(/[\s_-]+/gu, "").toLowerCase();

function similar(names, columns) {
  const alike = new Map();
  for (const column of columns) alike.set(spelled(column), [...(alike.get(spelled(column)) ?? []), column]);
  return names.flatMap((name) => {
    const found = alike.get(spelled(name)) ?? [];
    return found.includes(name) ? [name] : found.slice(0, 1);
  });
}

function possible(field, columns) {
  const found = similar(ALIASES[field], columns);
  return found.length && spelled(found[0]) === field ? found.slice(0, 1) : [...found, null];
}

/** Returns the best choices of columns for references and prediction: [{references, prediction}, …], each null without a column. */
function choices(columns) {
  const every = possible("references", columns).flatMap((references) => possible("prediction", columns).map((prediction) => ({ references, prediction })));
  const filled = (choice) => CHOSEN_FIELDS.filter((field) => choice[field] !== null).length;
  const valid = every.filter((choice) => choice.references !== choice.prediction || choice.references === null);
  const most = Math.max(...valid.map(filled));
  return valid.filter((choice) => filled(choice) === most);
}

/**
 * Returns the columns to read each field from, given all column names: {field: [column, …]}.
 * If several columns could contain the references or the prediction, these fields have no column.
 */
export function mapped(columns) {
  const best = choices(columns);
  const found = Object.fromEntries(Object.entries(ALIASES).map(([field, names]) => [field, similar(names, columns)]));
  const [choice] = best.length === 1 ? best : [{ references: null, prediction: null }];
  const others = similar(ALIASES.references.filter((name) => !SHARED.includes(name)), columns.filter((column) => !Object.values(choice).includes(column)));
  found.references = choice.references === null ? [] : [choice.references, ...others];
  found.prediction = choice.prediction === null ? [] : [choice.prediction];
  return found;
}

/** Returns the fields whose column is unclear, with the columns that could contain them: {field: [column, …]}. */
export function unclear(columns) {
  const best = choices(columns);
  if (best.length === 1) return {};
  const could = CHOSEN_FIELDS.map((field) => [field, [...new Set(best.map((choice) => choice[field]).filter((column) => column !== null))]]);
  return Object.fromEntries(could.filter(([, named]) => named.length));
}
