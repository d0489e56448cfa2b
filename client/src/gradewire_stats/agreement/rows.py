"""Rows with scores, verdicts and labels, their parts by data set, model and group, and samples of one metric."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

RIGHT_FROM = 0.5
"""Lowest label or score that counts as right."""
# A label outside [0, 1] leaves verdict statistics undefined, as for an evaluator without verdicts.
_NO_VERDICT = 2.0


def right(labels: NDArray[np.float64]) -> NDArray[np.bool_] | None:
    """Return labels as right or wrong.

    Args:
        labels: float64[rows], human labels without NaN.

    Returns:
        True from 0.5 up; None if a label lies outside [0, 1], because then nothing defines right.
    """
    if labels.size and (labels.min() < 0.0 or labels.max() > 1.0):
        return None
    return labels >= RIGHT_FROM


@dataclass(frozen=True, slots=True)
class JudgedRows:
    """Scores of several metrics, with human labels.

    Attributes:
        scores: float64[rows] of each metric; NaN for a failed row, which no statistic counts.
        verdicts: float64[rows] of each metric: 1 right, 0 wrong, NaN without a verdict.
        labels: float64[rows] without NaN. Verdicts, AUC and accuracy need labels in [0, 1] and count 0.5 or more as
            right.
        datasets: Data set of each row; "" without one.
        models: Model under test of each row; "" without one.
        questions: Key of each row's question. Rows of one data set with the same key are drawn together and compared
            with each other by `pairwise`; a blank key is unique. For texts the question's words are a good key; the
            same words about another image need another key.
        groups: Group of each row (for example a kind of question), "" without one; empty if no groups are wanted.
        verdict_labels: float64[rows], labels for verdicts and AUC instead of `labels`; None: `labels`.
    """

    scores: Mapping[str, NDArray[np.float64]]
    verdicts: Mapping[str, NDArray[np.float64]]
    labels: NDArray[np.float64]
    datasets: Sequence[str]
    models: Sequence[str]
    questions: Sequence[str]
    groups: Sequence[str] = ()
    verdict_labels: NDArray[np.float64] | None = None

    def beside_evaluator(self, verdicts: NDArray[np.float64]) -> Self:
        """Return the same rows with an evaluator's verdicts as `verdict_labels`; `labels` are its scores.

        Args:
            verdicts: float64[rows]: 1 right, 0 wrong; NaN in all rows if the evaluator gives none, which leaves AUC and
                verdict statistics undefined.
        """
        return replace(self, verdict_labels=np.where(np.isnan(verdicts), _NO_VERDICT, verdicts))

    def with_cuts(self, cuts: Mapping[str, float]) -> Self:
        """Return the same rows with verdicts from scores.

        Args:
            cuts: Lowest score of a right answer, by metric; replaces the metric's own verdicts.

        Raises:
            ValueError: A metric is unknown, or its cut is not finite.
        """
        for metric, cut in cuts.items():
            if metric not in self.scores:
                raise ValueError(f"cannot cut {metric}: name a scored metric: {', '.join(self.scores)}")
            if not np.isfinite(cut):
                raise ValueError(f"the cut of {metric} is {cut}: use a finite number")
        cut_verdicts = {
            metric: np.where(np.isnan(self.scores[metric]), np.nan, (self.scores[metric] >= cut).astype(np.float64))
            for metric, cut in cuts.items()
        }
        return replace(self, verdicts={**self.verdicts, **cut_verdicts})


Level = Literal["cell", "dataset", "model", "group", "all"]


@dataclass(frozen=True, slots=True)
class Part:
    """Rows with the same data set, model, both or group, or all rows.

    Attributes:
        level: The common property.
        rows: int[rows of the part], positions in the table.
    """

    level: Level
    dataset: str
    model: str
    group: str
    rows: NDArray[np.intp]


def parts_of(rows: JudgedRows) -> list[Part]:
    """Return the parts of a table, the finest first, all rows last.

    A level that would only repeat the parts above it is left out; a single part is a "cell". Rows without a group are
    in no group's part.
    """
    cells = rows_by(list(zip(map(str, rows.datasets), map(str, rows.models), strict=True)))
    names, under_test = rows_by(list(map(str, rows.datasets))), rows_by(list(map(str, rows.models)))
    parts = [Part("cell", dataset, model, "", where) for (dataset, model), where in cells.items()]
    if len(names) > 1 and len(under_test) > 1:
        parts += [Part("dataset", name, "", "", where) for name, where in names.items()]
        parts += [Part("model", "", name, "", where) for name, where in under_test.items()]
    groups = rows_by(list(map(str, rows.groups)))
    parts += [
        Part("group", "", "", name, where) for name, where in groups.items() if name and len(where) < len(rows.labels)
    ]
    if len(parts) > 1:
        parts.append(Part("all", "", "", "", np.arange(len(rows.labels))))
    return parts


Key = TypeVar("Key", str, tuple[str, str])


def rows_by(keys: Sequence[Key]) -> dict[Key, NDArray[np.intp]]:
    """Return the positions of each key, int[rows with the key], by ascending key."""
    found: dict[Key, list[int]] = {}
    for row, key in enumerate(keys):
        found.setdefault(key, []).append(row)
    return {key: np.array(found[key], dtype=np.intp) for key in sorted(found)}


@dataclass(frozen=True, slots=True)
class Sample:
    """Rows with a score, by ascending score, so that no draw needs sorting.

    Attributes:
        scores: float64[rows], finite.
        verdicts: float64[rows]: 1 right, 0 wrong, NaN without a verdict.
        labels: float64[rows].
        verdict_labels: float64[rows], labels to compare verdicts with.
        positive: bool[rows], labelled right; None if a label of the table lies outside [0, 1].
        clusters: int[rows], question of each row.
        failed: Rows of the part without a score.
    """

    scores: NDArray[np.float64]
    verdicts: NDArray[np.float64]
    labels: NDArray[np.float64]
    verdict_labels: NDArray[np.float64]
    positive: NDArray[np.bool_] | None
    clusters: NDArray[np.intp]
    failed: int

    @property
    def judged(self) -> int:
        """Rows with a verdict."""
        return int(np.count_nonzero(~np.isnan(self.verdicts)))


@dataclass(frozen=True, slots=True)
class NumberedRows:
    """A table with numbered questions, shared by all its samples.

    Attributes:
        clusters: int[rows], question of each row.
        strata: int[questions], data set of each question.
    """

    rows: JudgedRows
    clusters: NDArray[np.intp]
    strata: NDArray[np.intp]

    def usable(self, part: NDArray[np.intp], *metrics: str) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return which rows of a part all metrics scored, and which they all judged too: two bool[rows of the part].

        Args:
            part: int[rows of the part], positions in the table.
            *metrics: At least one metric.
        """
        scored = np.all([np.isfinite(self.rows.scores[metric][part]) for metric in metrics], axis=0)
        unjudged = np.any([np.isnan(self.rows.verdicts[metric][part]) for metric in metrics], axis=0)
        return scored, scored & ~unjudged

    def sample(
        self, metric: str, part: NDArray[np.intp], *, scored: NDArray[np.bool_], judged: NDArray[np.bool_]
    ) -> Sample:
        """Return one metric on the `scored` rows (from `usable`), with the table's cluster numbers."""
        rows = self.rows
        kept = np.flatnonzero(scored)
        kept = kept[np.argsort(rows.scores[metric][part[kept]], kind="stable")]
        taken = part[kept]
        verdict_labels = rows.labels if rows.verdict_labels is None else rows.verdict_labels
        positive = right(verdict_labels)
        return Sample(
            scores=rows.scores[metric][taken],
            verdicts=np.where(judged[kept], rows.verdicts[metric][taken], np.nan),
            labels=rows.labels[taken],
            verdict_labels=verdict_labels[taken],
            positive=None if positive is None else positive[taken],
            clusters=self.clusters[taken],
            failed=len(part) - len(kept),
        )
