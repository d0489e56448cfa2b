"""Labelled rows with scores as arrays, for fitting and for measuring."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gradewire.errors import InvalidRequest
from gradewire.metrics.choice import parameter_names, parse_metric_line
from gradewire_cli.problems import InputError, one_line_errors
from gradewire_cli.results.resumable_output import verdict
from gradewire_stats.agreement.rows import right
from gradewire_stats.calibration.labelled_rows import Half, half_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from gradewire.metrics.base import Metric
    from gradewire_cli.rows.input_file import InputFile
    from gradewire_cli.rows.row import Row
    from gradewire_cli.scoring.labelled_rows import LabelledRows


_COLUMN = "source"


def with_sources(source: InputFile, column: str | None) -> InputFile:
    """Return the input with the column of --source, which must exist if it was named."""
    options = replace(
        source.options,
        grouped_by=(column or _COLUMN,),
        grouping_option="--source",
        grouping_needed=column is not None,
    )
    return replace(source, options=options)


def source_of(row: Row) -> str:
    """Return a row's source: its column, else its file if there are several, else its data set."""
    said = next(iter(row.grouping.values()), "")
    if said or (row.grouping and _COLUMN not in row.grouping):
        return said
    return row.file or row.dataset


# Models are compared separately; features do not depend on features_only.
_LEFT_ASIDE = frozenset({"model", "grader", "features_only"})


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledScores:
    """Rows with a score, in the order of the file.

    Attributes:
        scores: float64[rows], finite.
        verdicts: float64[rows] of the current metric: 1 right, 0 wrong, NaN without a verdict.
        labels: float64[rows] in [0, 1].
        question_keys: Keys that identify questions (`JudgedRows.questions`).
        results: Results as in an output file.
        failed: Number of rows left out because they have no score.
        sha256: 64 hex digits over question, references, prediction and label of these rows.
    """

    scores: NDArray[np.float64]
    verdicts: NDArray[np.float64]
    labels: NDArray[np.float64]
    questions: Sequence[str]
    question_keys: Sequence[str]
    datasets: Sequence[str]
    sources: Sequence[str]
    results: Sequence[Mapping[str, Any]]
    line: str
    failed: int
    sha256: str

    @property
    def right(self) -> NDArray[np.bool_]:
        """bool[rows], whether annotators called the answer right."""
        return self.labels >= 0.5

    def values(self, name: str) -> NDArray[np.float64]:
        """Return float64[rows] of a number that every result has."""
        return np.array([result[name] for result in self.results], dtype=np.float64)


def labelled_scores(
    labelled: LabelledRows, metric: Metric, *, half: Half | None
) -> tuple[LabelledScores, LabelledScores | None]:
    """Return the rows for fitting and those for measuring.

    Returns:
        The rows for fitting with their digest, and the other half, or None without halves.

    Raises:
        InputError: The metric is missing or ambiguous, no row has a score, labels lie outside [0, 1], or a half is
            empty.
    """
    judged = labelled.judged()
    label = _column(labelled, metric)
    lines = _lines(labelled, label)
    if len(lines) > 1:
        raise InputError(f"the scores come from several metrics: {', '.join(lines)}. Score the file again")
    scores = judged.scores[label]
    if right(judged.labels) is None:
        row, value = next(
            (row, value) for (row, _), value in zip(labelled.kept, judged.labels, strict=True) if not 0 <= value <= 1
        )
        raise InputError(
            f"{row.position}: the label {value:g} lies outside [0, 1], so it is unknown which answers are right. "
            "Scale the labels so that 0.5 and above is right"
        )
    kept = [
        (row, output["scores"][label], value)
        for (row, output), score, value in zip(labelled.kept, scores, judged.labels, strict=True)
        if np.isfinite(score)
    ]
    if not kept:
        reasons = ", ".join(f"{status} {count}" for status, count in labelled.tallies[label].failures.items())
        raise InputError(f"no row has a score for {label}: {reasons}")
    if half is not None:
        fitted, read = (
            [each for each in kept if (half_of(_question(each[0])) == half) is wanted] for wanted in (True, False)
        )
        if not fitted or not read:
            raise InputError(f"--fit-half {half}: all rows belong to one half of the questions. Leave it out")
        return _gathered(label, fitted, len(scores) - len(kept)), _gathered(label, read, 0)
    return _gathered(label, kept, len(scores) - len(kept)), None


def _column(labelled: LabelledRows, metric: Metric) -> str:
    """Return the label of the metric's scores, for an output file may hold several metrics."""
    known = {label: _lines(labelled, label) for label in labelled.tallies}
    fits = [label for label, lines in known.items() if _is_of(label, lines, metric)]
    if len(fits) == 1:
        return fits[0]
    model = f" of model {asked}" if (asked := getattr(metric, "model", None)) else ""
    there = ", ".join(_described(label, lines) for label, lines in known.items())
    raise InputError(
        f"--metric {metric.name}{model} matches {len(fits) or 'none'} of the scores. "
        + (
            "Add its preset, parameters or --model NAME@DIGEST to tell it from the others"
            if fits
            else "Name one with --metric and --model"
        )
        + f". The scores: {there}"
    )


def _described(label: str, lines: Sequence[str]) -> str:
    """Return a column's label with its metric identifiers."""
    said = " and ".join(line for line in lines if line != label)
    return f"{label} ({said})" if said else label


def _is_of(label: str, lines: Sequence[str], metric: Metric) -> bool:
    """Return whether a column holds a metric: by its identifiers, or by its label if every row failed before."""
    if lines:
        with one_line_errors():
            return any(_answers(parse_metric_line(line), metric, silent=False) for line in lines)
    try:
        return _answers(parse_metric_line(label), metric, silent=True)
    except InvalidRequest:
        return False


def _answers(scored: Metric, metric: Metric, *, silent: bool) -> bool:
    """Return whether scores of `scored` are those of a metric; parameters that it does not name may have any value.

    With `silent`, parameters that `scored` does not name may also have any value.
    """
    if scored.name != metric.name:
        return False
    asked = {name: getattr(metric, name) for name in parameter_names(metric.name) if name not in _LEFT_ASIDE}
    asked |= {"preset": getattr(metric, "preset", None)}
    pairs = [(getattr(scored, name), value) for name, value in asked.items() if value is not None]
    return (
        _same_model(scored, metric, "model")
        and _same_model(scored, metric, "grader")
        and (silent or _has_grader(scored) or not _has_grader(metric))
        and all(said == value or (silent and said is None) for said, value in pairs)
    )


def _same_model(scored: Metric, metric: Metric, kind: str) -> bool:
    """Return whether both may use one model: identifiers have 12 digits of a digest, users may give any number."""
    one, other = (str(getattr(each, kind, None) or "").partition("@") for each in (scored, metric))
    same_digest = one[2].startswith(other[2]) or other[2].startswith(one[2])
    return same_digest and (not (one[0] and other[0]) or one[0] == other[0])


def _has_grader(metric: Metric) -> bool:
    return bool(getattr(metric, "grader", None))


def _lines(labelled: LabelledRows, label: str) -> list[str]:
    """Return the distinct identifiers of a label's scores, usually one; none if all rows failed before it was known."""
    said = (str(output["scores"][label].get("line", "")) for _, output in labelled.kept)
    return [line for line in dict.fromkeys(said) if line]


def _gathered(label: str, rows: Sequence[tuple[Row, Mapping[str, Any], float]], failed: int) -> LabelledScores:
    judged = [verdict(label, result) for _, result, _ in rows]
    digest = hashlib.sha256()
    for row, _, value in rows:
        item = row.item or {}
        said = [item.get("question", ""), item.get("references"), item.get("prediction"), value]
        digest.update(json.dumps(said, ensure_ascii=True).encode("ascii") + b"\n")
    return LabelledScores(
        scores=np.array([result["score"] for _, result, _ in rows], dtype=np.float64),
        verdicts=np.array([np.nan if each is None else float(each) for each in judged]),
        labels=np.array([value for _, _, value in rows], dtype=np.float64),
        questions=[_question(row) for row, _, _ in rows],
        question_keys=[row.question_key for row, _, _ in rows],
        datasets=[row.dataset for row, _, _ in rows],
        sources=[source_of(row) for row, _, _ in rows],
        results=[result for _, result, _ in rows],
        line=str(rows[0][1].get("line", "")),
        failed=failed,
        sha256=digest.hexdigest(),
    )


def _question(row: Row) -> str:
    return str((row.item or {}).get("question", ""))
