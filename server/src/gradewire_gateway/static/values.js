// Converts a row's values to text by the rules of `gradewire score`. An unclear value is an error, never a guess.

import { ITEM_FIELDS, LISTS } from "./aliases.js";

const TEXT_KEYS = ["text", "answer"];
const MAX_LIST_CHARACTERS = 1 << 20;

/** An error for a value that cannot be read; the message names the column. */
export class UnreadableValueError extends Error {}

/** Returns a value's text; null if the value is missing. */
export function textOf(value, at) {
  if (value === null || value === undefined) return null;
  if (typeof value === "string") return value;
  if (typeof value === "boolean") throw new UnreadableValueError(`${at} is the boolean ${value}: write it as a string, like the other answers`);
  if (typeof value === "number") return numberText(value, at);
  throw new UnreadableValueError(`${at} is ${Array.isArray(value) ? "a list" : "an object"}: give a string`);
}

function numberText(value, at) {
  if (Number.isInteger(value) && Math.abs(value) >= 2 ** 53) {
    throw new UnreadableValueError(`${at} is a number with more digits than a browser can read from JSON: write it as a string`);
  }
  const text = String(value);
  const [digits, exponent] = text.split("e");
  if (exponent === undefined || Math.abs(value) < 1e-9 || Math.abs(value) >= 1e24) return text;
  const places = digits.split(".")[1]?.length ?? 0;
  return value.toFixed(Math.min(100, Math.max(0, places - Number(exponent))));
}

const TRUTH = new Map([["true", true], ["yes", true], ["1", true], ["1.0", true], ["false", false], ["no", false], ["0", false], ["0.0", false]]);

/** Returns a truth value, which may be a string or a number; null if the value is missing. */
export function truthOf(value, at) {
  if (value === null || value === undefined || value === "") return null;
  const found = TRUTH.get(String(value).trim().toLowerCase());
  if (found === undefined) throw new UnreadableValueError(`${at} is ${JSON.stringify(value).slice(0, 40)}: give true or false`);
  return found;
}

/** Returns the texts in a value of references; null if the value is missing. */
export function textsOf(value, at) {
  if (value === null || value === undefined) return null;
  let listed = value;
  if (typeof value === "string") listed = listIn(value) ?? [value];
  if (!Array.isArray(listed)) listed = [listed];
  return listed.map((entry, place) => {
    const inner = entry !== null && typeof entry === "object" && !Array.isArray(entry) ? inObject(entry, `${at}[${place}]`) : entry;
    const text = textOf(inner, `${at}[${place}]`);
    if (text === null) throw new UnreadableValueError(`${at}[${place}] is null: remove it`);
    return text;
  });
}

function inObject(value, at) {
  const keys = TEXT_KEYS.filter((key) => key in value);
  if (keys.length !== 1) throw new UnreadableValueError(`${at} is an object with the keys ${Object.keys(value).sort().join(", ") || "none"}: give a list of strings`);
  return value[keys[0]];
}

/** Returns the list in a cell, in JSON or in the form in which Python prints lists of strings; null without a list. */
export function listIn(cell) {
  const text = cell.trim();
  if (!text.startsWith("[") || !text.endsWith("]") || text.length > MAX_LIST_CHARACTERS) return null;
  let list;
  try {
    list = JSON.parse(text);
  } catch {
    list = pythonList(text);
  }
  if (list === null && LISTS_OF_LISTS.test(text) && text.slice(1, -1).match(INNER_LIST).every(pythonList)) return [[]];
  // A list of numbers, such as "[0, 1]", is an answer: an interval, or a list in program code.
  if (!Array.isArray(list) || (list.length && list.every((entry) => typeof entry === "number"))) return null;
  return list;
}

// Python prints commas between strings; numpy prints none.
const PYTHON_LIST = /^\[\s*(?:(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")\s*(?:,\s*|(?=\])))*\]$/su;
const NUMPY_ARRAY = /^\[\s*(?:(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")\s*)+\]$/su;
const LISTS_OF_LISTS = /^\[\s*(?:\[[^[\]]*\]\s*,?\s*)+\]$/u;
const INNER_LIST = /\[[^[\]]*\]/gu;
const QUOTED = /'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"/gsu;
const ESCAPES = { n: "\n", t: "\t", r: "\r", "\\": "\\", "'": "'", '"': '"' };

function pythonList(text) {
  if (!PYTHON_LIST.test(text) && !NUMPY_ARRAY.test(text)) return null;
  return [...text.matchAll(QUOTED)].map((found) => (found[1] ?? found[2]).replace(
    /\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|U([0-9a-f]{8})|(.))/gisu,
    (whole, two, four, eight, one) => (one ? ESCAPES[one] ?? whole : String.fromCodePoint(parseInt(two ?? four ?? eight, 16)))));
}

/**
 * Returns a row's item and the other fields that a report needs: {item, more}.
 * `columns` is from `mapped`. Throws UnreadableValueError.
 */
export function itemOf(fields, columns, index) {
  const first = (field) => {
    const there = columns[field].filter((column) => column in fields);
    const column = there.find((one) => fields[one] !== null && fields[one] !== undefined) ?? there[0];
    return [column, column === undefined ? null : fields[column]];
  };
  const item = {};
  for (const field of ITEM_FIELDS) {
    const [column, value] = first(field);
    const read = LISTS.includes(field) ? textsOf(value, column) : textOf(value, column);
    // null means that the model gave no answer
    if (read === null && field === "prediction" && column !== undefined) item.prediction = "";
    if (read !== null && !(LISTS.includes(field) && read.length === 1 && read[0] === "")) item[field] = read;
  }
  const [answerableColumn, answerable] = first("answerable");
  const truth = truthOf(answerable, answerableColumn);
  if (truth !== null) item.answerable = truth;
  if (truth === false && item.references === undefined) item.references = []; // the question has no answer
  for (const field of ["references", "prediction"]) {
    if (item[field] === undefined) throw new UnreadableValueError(`has no ${field}${columns[field].length ? ` (column ${columns[field][0]})` : ""}`);
  }
  const [idColumn, id] = first("id");
  item.id = textOf(id, idColumn) || String(index);
  const more = {};
  for (const field of ["label", "labels", "dataset", "model", "question_id"]) {
    const [, value] = first(field);
    if (value !== null && value !== undefined && value !== "") more[field] = value;
  }
  return { item, more };
}
