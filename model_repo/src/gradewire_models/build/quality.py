"""Check that a variant's scores stay close to its base's scores."""

import hashlib
import json
import math
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from importlib import resources
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from tokenizers import Tokenizer

from gradewire_models.bf16 import pad
from gradewire_models.build.calibration_rows import tokenize
from gradewire_models.build.verify import Check, computed_how, open_computing, run
from gradewire_models.errors import BuildError, ModelBrokenError
from gradewire_models.repository.built import BuiltModel, load_built
from gradewire_models.repository.grader_input import begin_and_separator, grader_input
from gradewire_models.repository.suffix import suffixed_ids

ROWS = 500

MAX_SCORE_CHANGE = 0.01
MIN_RANK_CORRELATION = 0.999

_BATCH_DEPENDENT = frozenset({"DynamicQuantizeLinear", "DynamicQuantizeMatMul", "DynamicQuantizeLSTM"})
_BATCH_TOKENS = 512

Scores = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """A question, accepted answers, and an answer to score."""

    question: str
    references: tuple[str, ...]
    prediction: str


@dataclass(frozen=True, slots=True)
class AnswerRows:
    """At least one row, the rows' origin, and the rows' SHA-256 in 64 hex characters."""

    rows: tuple[AnswerRow, ...]
    origin: str
    sha256: str


def own_rows() -> AnswerRows:
    """Return gradewire's test rows: 42 questions with 12 answers each, right and wrong, short and long."""
    rows = []
    made_of = tomllib.loads(resources.files(__package__).joinpath("quality.toml").read_text(encoding="utf-8"))
    for question, references, other, wrong in made_of["facts"]:
        accepted = tuple(references.split("|"))
        words = {"question": question, "reference": accepted[0], "other": other, "wrong": wrong}
        rows += [AnswerRow(question, accepted, style.format(**words)) for style in made_of["styles"]]
    return _collect(rows, "gradewire's own rows")


def read_rows(path: Path) -> AnswerRows:
    """Read JSON lines with ``question``, ``references`` and ``prediction``.

    If the file has more than 500 rows, return 500 rows that are spread evenly over the file.

    Raises:
        BuildError: The file is not readable, or a line lacks a field.
    """
    rows = []
    try:
        # splitlines would also split at characters that JSON allows inside a string.
        lines = path.read_text(encoding="utf-8").rstrip("\n").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise BuildError(f"cannot read {path}: {error}") from error
    if lines == [""]:
        raise BuildError(f"{path} has no rows")
    for number, line in enumerate(lines, start=1):
        try:
            row = json.loads(line)
            references = tuple(row["references"])
            found = AnswerRow(row["question"], references, row["prediction"])
        except (json.JSONDecodeError, KeyError, TypeError) as error:
            raise BuildError(
                f"{path}, line {number}: must have question, references and prediction ({error})"
            ) from error
        texts = (found.question, found.prediction, *references)
        if not references or not all(isinstance(text, str) and text.strip() for text in texts):
            raise BuildError(f"{path}, line {number}: a text is empty or not a string")
        rows.append(found)
    if len(rows) > ROWS:
        rows = [rows[place * len(rows) // ROWS] for place in range(ROWS)]
    return _collect(rows, path.name)


def _collect(rows: list[AnswerRow], origin: str) -> AnswerRows:
    lines = [json.dumps([row.question, row.references, row.prediction], ensure_ascii=False) for row in rows]
    return AnswerRows(tuple(rows), origin, hashlib.sha256("\n".join(lines).encode()).hexdigest())


def check_quality(repository: Path, name: str, path: Path | None) -> list[Check]:
    """Compare a built variant with its base on the rows in `path`, or on gradewire's rows if `path` is None.

    Return no checks if the model is broken or not a variant.

    Raises:
        ModelNotBuiltError: The model or its base is missing.
        BuildError: The rows are not readable.
    """
    try:
        variant = load_built(repository, name)
    except ModelBrokenError:
        return []  # `verify_built` reports the broken model
    if not variant.base:
        return []
    return compare_with_base(repository, name, variant.base, own_rows() if path is None else read_rows(path))


def compare_with_base(repository: Path, name: str, base: str, rows: AnswerRows) -> list[Check]:
    """Compare the scores of the models `name` and `base` on a CPU; run a bf16 model in bf16.

    Raises:
        ModelNotBuiltError: A model is missing.
        ModelBrokenError: A model is broken.
    """
    variant, original = load_built(repository, name), load_built(repository, base)
    whose = f"against {base} on {len(rows.rows)} rows ({rows.origin}, SHA-256 {rows.sha256[:12]})"
    if note := computed_how(variant):
        whose += f", {note}"
    checks = [_check_operators(variant)]
    if len(rows.rows) < ROWS:
        checks.append(Check("rows", passed=False, detail=f"there are {len(rows.rows)} rows, but {ROWS} are needed"))
    before, after = row_scores(original, rows.rows), row_scores(variant, rows.rows)
    for score in before:
        change = float(np.abs(after[score] - before[score]).max())
        correlation = rank_correlation(after[score], before[score])
        detail = (
            f"largest change {change:.4f} (below {MAX_SCORE_CHANGE}), rank correlation "
            f"{correlation:.5f} (above {MIN_RANK_CORRELATION}) {whose}"
        )
        passed = change < MAX_SCORE_CHANGE and correlation > MIN_RANK_CORRELATION
        checks.append(Check(f"scores of {score}", passed=passed, detail=detail))
    return checks


def row_scores(model: BuiltModel, rows: Sequence[AnswerRow]) -> dict[str, Scores]:
    """Return the scores ``sbert`` and ``sfve`` with this encoder for every row, float64 [rows] in [-1, 1].

    Of a grader, return the score ``grader`` in [0, 1]: the logistic function of the largest logit among the references.
    ``sbert`` is the largest cosine between the answer and a reference. ``sfve`` is the largest cosine of the texts in
    the format "Question: … Answer: …" (docs/reference/metrics.md).
    """
    if model.kind == "grader":
        return {"grader": _grader_scores(model, rows)}
    forms = {
        "sbert": [(row.prediction, row.references) for row in rows],
        "sfve": [
            (_pair(row.question, row.prediction), tuple(_pair(row.question, text) for text in row.references))
            for row in rows
        ],
    }
    texts = sorted({text for pairs in forms.values() for answer, references in pairs for text in (answer, *references)})
    places = {text: place for place, text in enumerate(texts)}
    vectors = embed_texts(model, texts).astype(np.float64)
    return {
        score: np.array(
            [
                (vectors[[places[text] for text in references]] @ vectors[places[answer]]).clip(-1, 1).max()
                for answer, references in pairs
            ]
        )
        for score, pairs in forms.items()
    }


def embed_texts(model: BuiltModel, texts: Sequence[str]) -> NDArray[np.float32]:
    """Return the sentence vectors of `texts`, float32 [texts, dims], computed in batches of similar lengths."""
    if not model.suffix:
        ids = tokenize(model.tokenizer_path, [model.prefix + text for text in texts], model.max_tokens)
        return _computed(model, ids)
    tokenizer = Tokenizer.from_file(str(model.tokenizer_path))
    read = partial(suffixed_ids, tokenizer, prefix=model.prefix, suffix=model.suffix, max_tokens=model.max_tokens)
    return _computed(model, [np.array(read(text), np.int64) for text in texts])


def _grader_scores(model: BuiltModel, rows: Sequence[AnswerRow]) -> Scores:
    tokenizer = Tokenizer.from_file(str(model.tokenizer_path))
    begin, separator = begin_and_separator(tokenizer)
    ids: list[NDArray[np.int64]] = []
    row_of: list[int] = []
    for number, row in enumerate(rows):
        texts = tokenizer.encode_batch([row.question, row.prediction, *row.references], add_special_tokens=False)
        question, answer, *references = (text.ids for text in texts)
        for reference in references:
            pieces = grader_input(question, reference, answer, begin=begin, separator=separator).pieces
            ids += [np.array(piece.ids, np.int64) for piece in pieces]
            row_of += [number] * len(pieces)
    highest = np.full(len(rows), -np.inf)
    np.maximum.at(highest, row_of, _computed(model, ids)[:, 0].astype(np.float64))
    scores: Scores = 1 / (1 + np.exp(-highest / model.temperature))
    return scores


def _computed(model: BuiltModel, ids: Sequence[NDArray[np.int64]]) -> NDArray[np.float32]:
    session = open_computing(model)
    vectors = np.empty((len(ids), model.dims), np.float32)
    waiting = sorted(range(len(ids)), key=lambda place: len(ids[place]), reverse=True)
    while waiting:
        count = max(1, _BATCH_TOKENS // len(ids[waiting[0]]))
        batch, waiting = waiting[:count], waiting[count:]
        (vectors[batch],) = run(session, [model.sentence_output], *pad([ids[place] for place in batch]))
    return vectors


def rank_correlation(first: Scores, second: Scores) -> float:
    """Return Spearman's correlation of values rounded to 6 decimal places.

    Without rounding, the last bits would decide the ranks of equal texts' cosines.
    """
    return spearman(np.round(first, 6), np.round(second, 6))


def spearman(left: Scores, right: Scores) -> float:
    """Return Pearson's correlation of average ranks, or NaN if one side is constant."""
    centred = [ranks - ranks.mean() for ranks in map(_average_ranks, (left, right))]
    lengths = [float(np.linalg.norm(each)) for each in centred]
    return math.nan if 0.0 in lengths else float(centred[0] @ centred[1] / (lengths[0] * lengths[1]))


def _average_ranks(values: Scores) -> Scores:
    _, rank, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: Scores = (np.cumsum(counts) - (counts - 1) / 2)[rank]
    return ranks


def _pair(question: str, answer: str) -> str:
    return f"Question: {question} Answer: {answer}"


def _check_operators(model: BuiltModel) -> Check:
    graph = onnx.load(model.onnx_path, load_external_data=False).graph
    found = sorted({node.op_type for node in graph.node} & _BATCH_DEPENDENT)
    wrong = f"{', '.join(found)}: a text's vector depends on the other texts in its batch"
    return Check(
        "operators", passed=not found, detail=wrong if found else "no operator derives its scale from the whole batch"
    )
