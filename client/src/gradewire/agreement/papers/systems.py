"""Models under test as metrics rank them, beside how people do: means by model (SFVE, table 3), system-level ranks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gradewire.agreement.estimates import Estimate, estimate
from gradewire.agreement.optional_imports import one_blas_thread
from gradewire.agreement.parts import rows_by
from gradewire.agreement.resample import draws, free_clusters, question_clusters, strata_of
from gradewire.agreement.rows import JudgedRows

LEAST_MODELS = 3
"""With two models every metric ranks them rightly or wrongly: no correlation says more."""
MOST_MODELS = 200
"""So many are compared each with each in every draw; more of them are no models but a column of something else."""
# Entries of an array of draws, models and models.
_COMPARED_AT_A_TIME = 1 << 22


@dataclass(frozen=True, slots=True)
class SystemMeans:
    """Mean scores of the models under test on some rows.

    Attributes:
        metric: Label of the metric.
        means: Mean score of each model, on the rows that the metric scored.
        people: Mean label of each model on the same rows.
        kendall: tau-b of the two, over the models; NaN for fewer than `LEAST_MODELS`, or where a side is all alike.
        spearman: Their rank correlation, likewise.
        pearson: Their linear correlation, likewise.
    """

    metric: str
    means: Sequence[Estimate]
    people: Sequence[Estimate]
    kendall: Estimate
    spearman: Estimate
    pearson: Estimate


@dataclass(frozen=True, slots=True)
class SystemTable:
    """Models by metrics.

    Attributes:
        dataset: The data set that the rows are of; "" for all rows.
        models: The models, in the order of all figures.
        lines: One for each metric.
    """

    dataset: str
    models: Sequence[str]
    lines: Sequence[SystemMeans]


def system_tables(rows: JudgedRows, *, resamples: int = 5000, seed: int = 0) -> list[SystemTable]:
    """Means by model and system-level rank correlation, for each data set and over all rows.

    Means of one metric are compared between models; those of two metrics lie on scales of their own. Over all rows of
    several data sets a model that answered the easier ones stands higher, with people and metrics alike.

    Args:
        rows: Scores and labels; a row without a score is in no figure of that metric, the label beside it included.
        resamples: Draws of whole questions, within each data set.
        seed: Same seed, same intervals.

    Returns:
        A table for each data set, if there are several, and the one over all rows last; none for fewer than two models,
        nor for more than `MOST_MODELS`.

    Raises:
        MissingScipyError: threadpoolctl is not installed.
    """
    models = sorted({str(model) for model in rows.models if str(model)})
    if not 2 <= len(models) <= MOST_MODELS:
        return []
    clusters = question_clusters(rows.datasets, rows.questions)
    strata = strata_of(rows.datasets, clusters)
    numbers = {model: number for number, model in enumerate(models)}
    of_model = np.array([numbers.get(str(model), -1) for model in rows.models], dtype=np.intp)
    places = rows_by(list(map(str, rows.datasets)))
    chosen = {**(places if len(places) > 1 else {}), "": np.arange(len(rows.labels))}
    sums = {
        (dataset, metric): _Sums(scores, rows.labels, clusters, of_model, where[of_model[where] >= 0], len(models))
        for dataset, where in chosen.items()
        for metric, scores in rows.scores.items()
    }
    with one_blas_thread():
        for weights in draws(strata, resamples=resamples, seed=seed):
            for each in sums.values():
                each.take(weights)
    return [
        SystemTable(dataset, models, [sums[dataset, metric].line(metric, strata) for metric in rows.scores])
        for dataset in chosen
    ]


class _Sums:
    """Sums of one metric by question and model, and the means of models in all draws so far."""

    def __init__(  # noqa: PLR0913, PLR0917 - columns of one table
        self,
        scores: NDArray[np.float64],
        labels: NDArray[np.float64],
        clusters: NDArray[np.intp],
        of_model: NDArray[np.intp],
        where: NDArray[np.intp],
        models: int,
    ) -> None:
        scored = where[~np.isnan(scores[where])]
        self.questions, places = np.unique(clusters[scored], return_inverse=True)
        cells = places * models + of_model[scored]
        self._sums = np.stack(
            [
                np.bincount(cells, weights=values, minlength=len(self.questions) * models)
                .astype(np.float64)
                .reshape(len(self.questions), models)
                for values in (scores[scored], labels[scored], np.ones(len(scored)))
            ]
        )
        self._drawn: list[NDArray[np.float64]] = []

    def take(self, weights: NDArray[np.float64]) -> None:
        taken = weights if len(self.questions) == weights.shape[1] else weights[:, self.questions]
        self._drawn.append(_means(taken @ self._sums))

    def line(self, metric: str, strata: NDArray[np.intp]) -> SystemMeans:
        point = _means(self._sums.sum(axis=1, keepdims=True))
        drawn = np.concatenate(self._drawn, axis=1)
        kendall, spearman, pearson = (
            self._estimate(how(*point)[0], _in_pieces(how, drawn), strata)
            for how in (kendall_of, spearman_of, pearson_of)
        )
        means, people = (
            [
                self._estimate(point[side, 0, model], drawn[side, :, model], strata, self._sums[2, :, model] > 0)
                for model in range(drawn.shape[2])
            ]
            for side in (0, 1)
        )
        return SystemMeans(metric, means, people, kendall, spearman, pearson)

    def _estimate(
        self,
        value: float,
        drawn: NDArray[np.float64],
        strata: NDArray[np.intp],
        behind: NDArray[np.bool_] | None = None,
    ) -> Estimate:
        questions = self.questions if behind is None else self.questions[behind]
        return estimate(float(value), drawn, questions=free_clusters(questions, strata))


def _means(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """Means of scores and labels, float64[2, draws, models], of their sums and counts, float64[3, draws, models]."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(sums[2] > 0, sums[:2] / sums[2], np.nan))


def _in_pieces(
    how: Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.float64]], drawn: NDArray[np.float64]
) -> NDArray[np.float64]:
    """A correlation in all draws, float64[draws], few draws at a time where there are many models."""
    at_a_time = max(1, _COMPARED_AT_A_TIME // drawn.shape[2] ** 2)
    pieces = [how(*drawn[:, begin : begin + at_a_time]) for begin in range(0, drawn.shape[1], at_a_time)]
    return np.concatenate(pieces) if pieces else np.array([])


def _apart(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sign of the difference of each two models, float64[draws, models, models]."""
    return np.sign(values[:, :, None] - values[:, None, :])


def kendall_of(x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
    """tau-b over models in every draw.

    Args:
        x: float64[draws, models].
        y: float64[draws, models].

    Returns:
        float64[draws]; NaN for fewer than `LEAST_MODELS`, where a side is all alike, and where a model has no mean.
    """
    if x.shape[1] < LEAST_MODELS:
        return np.full(len(x), np.nan)
    signs_x, signs_y = _apart(x), _apart(y)
    untied = np.sqrt((signs_x**2).sum(axis=(1, 2)) * (signs_y**2).sum(axis=(1, 2)))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(untied > 0, (signs_x * signs_y).sum(axis=(1, 2)) / untied, np.nan))


def spearman_of(x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rank correlation over models in every draw; arguments and result as those of `kendall_of`."""
    # The sum of these signs is twice a midrank's distance from the middle.
    return pearson_of(_apart(x).sum(axis=2), _apart(y).sum(axis=2))


def pearson_of(x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Linear correlation over models in every draw; arguments and result as those of `kendall_of`."""
    if x.shape[1] < LEAST_MODELS:
        return np.full(len(x), np.nan)
    dx, dy = x - x.mean(axis=1, keepdims=True), y - y.mean(axis=1, keepdims=True)
    spread = np.sqrt((dx**2).sum(axis=1) * (dy**2).sum(axis=1))
    # What rounding leaves of models that are all alike is no spread.
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(spread > 1e-15, (dx * dy).sum(axis=1) / spread, np.nan))
