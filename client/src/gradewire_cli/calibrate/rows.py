"""Scored and labelled rows in arrays for fitting and measuring."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from gradewire.errors import InvalidRequest
from gradewire.metrics.choice import parameter_names, parse_metric_line
from gradewire.results import Status
from gradewire_cli.problems import InputError, nothing_scored, one_line_errors
from gradewire_cli.results.resumable_output import verdict
from gradewire_proto.wire_rules import NO_GRADER
from gradewire_stats.agreement.rows import right
from gradewire_stats.calibration.labelled_rows import Half, half_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import click
    from numpy.typing import NDArray

    from gradewire.metrics.base import Metric
    from gradewire_cli.rows.input_file import InputFile
    from gradewire_cli.rows.row import Row
    from gradewire_cli.scoring.labelled_rows import LabelledRows
    from gradewire_cli.scoring.labels_file import JoinedLabels


_COLUMN = "source"


def with_sources(source: InputFile, column: str | None) -> InputFile:
    """Return the input with its --source column. A column that the user names must exist."""
    options = replace(
        source.options,
        grouped_by=(column or _COLUMN,),
        grouping_option="--source",
        grouping_needed=column is not None,
    )
    return replace(source, options=options, reading=replace(source.reading, columns=options.named_columns))


def source_of(row: Row) -> str:
    """Return the row's value in the source column or, without this column, its file or data set."""
    said = next(iter(row.grouping.values()), "")
    if said or (row.grouping and _COLUMN not in row.grouping):
        return said
    return row.file or row.dataset


VOTES = "votes"
"""Name of the fit for annotators' votes (`gradewire_server.metrics.correctness.fit.VOTES`)."""
# Parameters to ignore. Models are compared separately, and features do not depend on features_only.
_LEFT_ASIDE = frozenset({"model", "grader", "features_only"})


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledScores:
    """Rows with a score, in file order.

    Attributes:
        scores: float64[rows], finite.
        verdicts: The metric's verdicts, float64[rows]: 1 (right), 0 (wrong) or NaN (no verdict).
        labels: float64[rows] in [0, 1].
        question_keys: Keys that identify the questions (`JudgedRows.questions`).
        added: bool[rows], True for the labels that --add gives.
        results: Each row's result, in the format of an output file.
        sha256: 64 hex digits, a hash of the rows' questions, references, predictions and labels.
    """

    scores: NDArray[np.float64]
    verdicts: NDArray[np.float64]
    labels: NDArray[np.float64]
    questions: Sequence[str]
    question_keys: Sequence[str]
    datasets: Sequence[str]
    sources: Sequence[str]
    added: NDArray[np.bool_]
    results: Sequence[Mapping[str, Any]]
    line: str
    failed: int
    sha256: str

    @property
    def right(self) -> NDArray[np.bool_]:
        """True for each answer that annotators consider right, as bool[rows]."""
        return self.labels >= 0.5

    def values(self, name: str) -> NDArray[np.float64]:
        """Return a numeric field's values as float64[rows]. Every result must contain the field."""
        return np.array([result[name] for result in self.results], dtype=np.float64)


def labelled_scores(
    labelled: LabelledRows, metric: Metric, *, half: Half | None
) -> tuple[LabelledScores, LabelledScores | None]:
    """Return the rows to fit on, and the other half's rows to measure on (None if `half` is None).

    Raises:
        InputError: The metric is missing or ambiguous, no row has a score, a label is outside [0, 1], or a half is
            empty.
    """
    judged = labelled.judged()
    label = _label_of(labelled, metric)
    lines = _identifiers_of(labelled, label)
    if len(lines) > 1:
        raise InputError(f"the scores come from more than one metric: {', '.join(lines)}. Score the file again")
    scores = judged.scores[label]
    if right(judged.labels) is None:
        row, value = next(
            (row, value) for (row, _), value in zip(labelled.kept, judged.labels, strict=True) if not 0 <= value <= 1
        )
        raise InputError(
            f"{row.position}: the label {value:g} is outside [0, 1]. Scale the labels so that 0.5 and above means right"
        )
    kept = [
        (row, output["scores"][label], value)
        for (row, output), score, value in zip(labelled.kept, scores, judged.labels, strict=True)
        if np.isfinite(score)
    ]
    gathered = partial(_gathered, label, labelled.from_file)
    if not kept:
        raise no_score(label, labelled)
    if half is not None:
        fitted, read = (
            [each for each in kept if (half_of(_question(each[0])) == half) is wanted] for wanted in (True, False)
        )
        if not fitted or not read:
            raise InputError(f"--fit-half {half}: all rows belong to one half of the questions. Leave out --fit-half")
        return gathered(fitted, len(scores) - len(kept)), gathered(read, 0)
    return gathered(kept, len(scores) - len(kept)), None


def no_score(label: str, labelled: LabelledRows) -> click.ClickException:
    """Return the error for a metric without any score. Empty answers are wrong input, all other causes failed work."""
    failures = labelled.tallies[label].failures
    error = nothing_scored(f"no row has a score for {label}", failures)
    return InputError(error.message) if failures.keys() <= {Status.EMPTY_PREDICTION} else error


def _label_of(labelled: LabelledRows, metric: Metric) -> str:
    known = {label: _identifiers_of(labelled, label) for label in labelled.tallies}
    fits = [label for label, lines in known.items() if _is_of(label, lines, metric)]
    if len(fits) == 1:
        return fits[0]
    model = f" of model {asked}" if (asked := getattr(metric, "model", None)) else ""
    there = ", ".join(_described(label, lines) for label, lines in known.items())
    raise InputError(
        f"--metric {metric.name}{model} matches {len(fits) or 'none'} of the scored metrics. "
        + (
            "Add a preset, parameters or --model NAME@DIGEST to choose one of them"
            if fits
            else "Choose one of the available scores with --metric and --model"
        )
        + f". Available scores: {there}"
    )


def _described(label: str, lines: Sequence[str]) -> str:
    said = " and ".join(line for line in lines if line != label)
    return f"{label} ({said})" if said else label


def _is_of(label: str, lines: Sequence[str], metric: Metric) -> bool:
    """Return True if the metric's scores have this label. Compare identifiers or, if all rows failed, the label."""
    if lines:
        with one_line_errors():
            return any(_answers(parse_metric_line(line), metric, silent=False) for line in lines)
    try:
        return _answers(parse_metric_line(label), metric, silent=True)
    except InvalidRequest:
        return False


def _answers(scored: Metric, metric: Metric, *, silent: bool) -> bool:
    """Return True if the scores of `scored` can serve as scores of `metric`.

    Parameters that `metric` does not name may have any value. With `silent`, parameters that `scored` does not name may
    also have any value.
    """
    if scored.name != metric.name:
        return False
    asked = {name: getattr(metric, name) for name in parameter_names(metric.name) if name not in _LEFT_ASIDE}
    asked |= {"preset": getattr(metric, "preset", None)}
    pairs = [(name, getattr(scored, name), value) for name, value in asked.items() if value is not None]
    return (
        _same_model(scored, metric, "model")
        and _same_grader(scored, metric, silent=silent)
        and all(
            # A result names the fit by its digits. If it is another fit than votes, its features are missing.
            said == value or (silent and said is None) or (name == "fit" and value == VOTES and said is not None)
            for name, said, value in pairs
        )
    )


def _same_model(scored: Metric, metric: Metric, kind: str) -> bool:
    """Return True if both metrics may use the same model. Users may shorten digests to any length."""
    one, other = (str(getattr(each, kind, None) or "").partition("@") for each in (scored, metric))
    same_digest = one[2].startswith(other[2]) or other[2].startswith(one[2])
    return same_digest and (not (one[0] and other[0]) or one[0] == other[0])


def _same_grader(scored: Metric, metric: Metric, *, silent: bool) -> bool:
    # A metric that names no grader has the usual one, which only the encoder knows.
    asked, used = (str(getattr(each, "grader", None) or "") for each in (metric, scored))
    if not used:
        return silent or asked in {"", NO_GRADER}
    return _same_model(scored, metric, "grader")


def _identifiers_of(labelled: LabelledRows, label: str) -> list[str]:
    said = (str(output["scores"][label].get("line", "")) for _, output in labelled.kept)
    return [line for line in dict.fromkeys(said) if line]


def _gathered(
    label: str, file: JoinedLabels | None, rows: Sequence[tuple[Row, Mapping[str, Any], float]], failed: int
) -> LabelledScores:
    added = [file is not None and file.adds and file.has(row) for row, _, _ in rows]
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
        added=np.array(added, dtype=np.bool_),
        results=[result for _, result, _ in rows],
        line=str(rows[0][1].get("line", "")),
        failed=failed,
        sha256=digest.hexdigest(),
    )


def _question(row: Row) -> str:
    return str((row.item or {}).get("question", ""))
