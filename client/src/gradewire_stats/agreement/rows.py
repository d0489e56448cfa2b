"""Tables of judged rows, and their parts by data set, model and group. A sample has the rows that a metric scored."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

RIGHT_FROM = 0.5
"""Lowest label or score that counts as right."""
# Label for rows without a verdict from the evaluator. Labels outside [0, 1] leave verdict statistics undefined.
_NO_VERDICT = 2.0


def right(labels: NDArray[np.float64]) -> NDArray[np.bool_] | None:
    """Convert labels to right or wrong.

    Args:
        labels: float64[rows], human labels without NaN.

    Returns:
        bool[rows], True for 0.5 or more. None if a label lies outside [0, 1], because "right" is then undefined.
    """
    if labels.size and (labels.min() < 0.0 or labels.max() > 1.0):
        return None
    return labels >= RIGHT_FROM


@dataclass(frozen=True, slots=True)
class JudgedRows:
    """Scores by several metrics, with human labels.

    Attributes:
        scores: float64[rows] by metric. NaN marks a failed row, which all statistics ignore.
        verdicts: float64[rows] by metric: 1 (right), 0 (wrong) or NaN (no verdict).
        labels: float64[rows] without NaN. Verdict statistics and AUC need labels in [0, 1] and count 0.5 or more as
            right.
        datasets: Each row's data set, or "".
        models: Each row's model under test, or "".
        questions: Key of each row's question. Rows in the same data set with the same key are drawn together, and
            `pairwise` compares them with each other. Rows with blank keys have separate questions.
        groups: Each row's group (for example a question type), or "". An empty sequence means that there are no groups.
        verdict_labels: float64[rows], labels for verdict statistics and AUC. None means `labels`.
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
        """Return the rows with an evaluator's verdicts as `verdict_labels`. `labels` must be the evaluator's scores.

        Args:
            verdicts: float64[rows]: 1 (right) or 0 (wrong). NaN in all rows means that the evaluator gives no verdicts.
                AUC and verdict statistics are then undefined.
        """
        return replace(self, verdict_labels=np.where(np.isnan(verdicts), _NO_VERDICT, verdicts))

    def with_cuts(self, cuts: Mapping[str, float]) -> Self:
        """Return the rows with verdicts that follow from scores.

        Args:
            cuts: Minimum score of a right answer, by metric. The new verdicts replace existing verdicts.

        Raises:
            ValueError: A metric is unknown, or a cut is not finite.
        """
        for metric, cut in cuts.items():
            if metric not in self.scores:
                raise ValueError(f"cannot cut {metric}. Scored metrics are {', '.join(self.scores)}")
            if not np.isfinite(cut):
                raise ValueError(f"the cut for {metric} is {cut}. Use a finite number")
        cut_verdicts = {
            metric: np.where(np.isnan(self.scores[metric]), np.nan, (self.scores[metric] >= cut).astype(np.float64))
            for metric, cut in cuts.items()
        }
        return replace(self, verdicts={**self.verdicts, **cut_verdicts})


Level = Literal["cell", "dataset", "model", "group", "all"]


@dataclass(frozen=True, slots=True)
class Part:
    """All rows, or the rows that share a data set, a model, both, or a group.

    Attributes:
        rows: int[the part's rows], positions in the table.
    """

    level: Level
    dataset: str
    model: str
    group: str
    rows: NDArray[np.intp]


def parts_of(rows: JudgedRows) -> list[Part]:
    """Return a table's parts: the level "cell" first, all rows last.

    A level that would only repeat the cells is left out. If there is only one part, its level is "cell". Rows without a
    group are in no part of the level "group".
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
    """Return the row positions for each key, int[rows with the key], by ascending key."""
    found: dict[Key, list[int]] = {}
    for row, key in enumerate(keys):
        found.setdefault(key, []).append(row)
    return {key: np.array(found[key], dtype=np.intp) for key in sorted(found)}


@dataclass(frozen=True, slots=True)
class Sample:
    """A part's rows that have a score from one metric, sorted by score, so that no draw needs sorting.

    Attributes:
        scores: float64[rows], finite.
        verdicts: float64[rows]: 1 (right), 0 (wrong) or NaN (no verdict).
        labels: float64[rows].
        verdict_labels: float64[rows], labels to compare verdicts with.
        positive: bool[rows], True if labelled right. None if a label in the table lies outside [0, 1].
        clusters: int[rows], each row's question.
        failed: Number of the part's rows without a score.
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
        """Number of rows with a verdict."""
        return int(np.count_nonzero(~np.isnan(self.verdicts)))


@dataclass(frozen=True, slots=True)
class NumberedRows:
    """A table with numbered questions, for drawing samples of rows.

    Attributes:
        clusters: int[rows], each row's question.
        strata: int[questions], each question's data set.
    """

    rows: JudgedRows
    clusters: NDArray[np.intp]
    strata: NDArray[np.intp]

    def usable(self, part: NDArray[np.intp], *metrics: str) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return two bool[the part's rows] masks: rows with all metrics' scores, and rows with all scores and verdicts.

        Args:
            part: int[the part's rows], positions in the table.
            *metrics: At least one metric.
        """
        scored = np.all([np.isfinite(self.rows.scores[metric][part]) for metric in metrics], axis=0)
        unjudged = np.any([np.isnan(self.rows.verdicts[metric][part]) for metric in metrics], axis=0)
        return scored, scored & ~unjudged

    def sample(
        self, metric: str, part: NDArray[np.intp], *, scored: NDArray[np.bool_], judged: NDArray[np.bool_]
    ) -> Sample:
        """Return a metric's sample of the `scored` rows (from `usable`), with the table's question numbers."""
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
