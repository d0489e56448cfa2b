"""Labelled rows with their scores as arrays: those that are fitted on, and those that the fit is measured on."""

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
    """Return the input with the column of --source read, which has to be there where it was asked for."""
    options = replace(
        source.options,
        grouped_by=(column or _COLUMN,),
        grouping_option="--source",
        grouping_needed=column is not None,
    )
    return replace(source, options=options)


def source_of(row: Row) -> str:
    """Return the source of a row of `with_sources`: its column, else its file of several, else its data set."""
    said = next(iter(row.grouping.values()), "")
    if said or (row.grouping and _COLUMN not in row.grouping):
        return said
    return row.file or row.dataset


# Models are told apart on their own; features are the same with the probability and without.
_LEFT_ASIDE = frozenset({"model", "grader", "features_only"})


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledScores:
    """Rows that have a score, in the order of the file.

    Attributes:
        scores: float64[rows], finite.
        verdicts: float64[rows] of the metric as it stands: 1 right, 0 wrong, NaN where it gave none.
        labels: float64[rows] in [0, 1].
        question_keys: What tells questions apart (`JudgedRows.questions`).
        results: As an output file has them.
        failed: Rows without a score, which are left out.
        sha256: Over question, references, prediction and label of these rows, 64 hex digits.
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
        """bool[rows], whether people called the answer right."""
        return self.labels >= 0.5

    def values(self, name: str) -> NDArray[np.float64]:
        """Return float64[rows], a number that every result has."""
        return np.array([result[name] for result in self.results], dtype=np.float64)


def labelled_scores(
    labelled: LabelledRows, metric: Metric, *, half: Half | None
) -> tuple[LabelledScores, LabelledScores | None]:
    """Return the rows that are fitted on, and those that the fit is measured on.

    Returns:
        The first with the digest of its own rows; the second, the other half, None without halves.

    Raises:
        InputError: The metric is not among them or is there several times, there is no row, labels lie outside
            [0, 1], or a half is empty.
    """
    judged = labelled.judged()
    label = _column(labelled, metric)
    lines = _lines(labelled, label)
    if len(lines) > 1:
        raise InputError(f"the scores are of several metrics: {', '.join(lines)}: score the file again")
    scores = judged.scores[label]
    if right(judged.labels) is None:
        row, value = next(
            (row, value) for (row, _), value in zip(labelled.kept, judged.labels, strict=True) if not 0 <= value <= 1
        )
        raise InputError(
            f"{row.position}: the label is {value:g}, and labels lie outside [0, 1]: nobody said which answers are "
            "right; scale them, 0.5 is right"
        )
    kept = [
        (row, output["scores"][label], value)
        for (row, output), score, value in zip(labelled.kept, scores, judged.labels, strict=True)
        if np.isfinite(score)
    ]
    if not kept:
        reasons = ", ".join(f"{status} {count}" for status, count in labelled.tallies[label].failures.items())
        raise InputError(f"no row has a score of {label}: {reasons}")
    if half is not None:
        fitted, read = (
            [each for each in kept if (half_of(_question(each[0])) == half) is wanted] for wanted in (True, False)
        )
        if not fitted or not read:
            raise InputError(f"--fit-half {half}: all rows belong to one half of the questions; leave it out")
        return _gathered(label, fitted, len(scores) - len(kept)), _gathered(label, read, 0)
    return _gathered(label, kept, len(scores) - len(kept)), None


def _column(labelled: LabelledRows, metric: Metric) -> str:
    """Return label of the metric's scores: an output file may hold those of others beside them."""
    known = {label: _lines(labelled, label) for label in labelled.tallies}
    fits = [label for label, lines in known.items() if _is_of(label, lines, metric)]
    if len(fits) == 1:
        return fits[0]
    model = f" of model {asked}" if (asked := getattr(metric, "model", None)) else ""
    there = ", ".join(_described(label, lines) for label, lines in known.items())
    raise InputError(
        f"--metric {metric.name}{model} names {len(fits) or 'none'} of the scores that are there: "
        + (
            "add the preset or parameters, or --model NAME@DIGEST, that tell it from the others"
            if fits
            else "say which one is calibrated, by --metric and --model"
        )
        + f"; there are {there}"
    )


def _described(label: str, lines: Sequence[str]) -> str:
    """Return a column and what its scores were computed as, which its label may leave open."""
    said = " and ".join(line for line in lines if line != label)
    return f"{label} ({said})" if said else label


def _is_of(label: str, lines: Sequence[str], metric: Metric) -> bool:
    """Tell whether a column is of a metric: by its lines, or its label where every row failed before there was one."""
    if lines:
        with one_line_errors():
            return any(_answers(parse_metric_line(line), metric, silent=False) for line in lines)
    try:
        return _answers(parse_metric_line(label), metric, silent=True)
    except InvalidRequest:
        return False


def _answers(scored: Metric, metric: Metric, *, silent: bool) -> bool:
    """Tell whether scores computed as `scored` are those of a metric; parameters that it does not name may be any.

    With `silent`, what `scored` does not say may be anything, too.
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
    """Tell whether both may be of one model: a line has twelve digits of its digest, a user may give fewer or more."""
    one, other = (str(getattr(each, kind, None) or "").partition("@") for each in (scored, metric))
    same_digest = one[2].startswith(other[2]) or other[2].startswith(one[2])
    return same_digest and (not (one[0] and other[0]) or one[0] == other[0])


def _has_grader(metric: Metric) -> bool:
    return bool(getattr(metric, "grader", None))


def _lines(labelled: LabelledRows, label: str) -> list[str]:
    """Return what its scores were computed as, mostly one line; none where all of them failed before that was known."""
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
