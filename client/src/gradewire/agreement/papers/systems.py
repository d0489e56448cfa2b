"""Models under test as metrics rank them, beside how people do: means by model (SFVE, table 3), system-level ranks."""

import math
from collections.abc import Sequence
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
"""Of more, which are hardly models, nothing is said: every two of them are compared in every draw."""
# Pairs of models, of all draws together, that are compared at a time.
_PAIRS_AT_A_TIME = 1 << 20


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
        models: The models that answered some of these rows, in the order of all figures.
        people: Mean label of each model over all these rows, scored or not.
        lines: One for each metric.
    """

    dataset: str
    models: Sequence[str]
    people: Sequence[Estimate]
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
        A table for each data set with at least two models, if there are several data sets, and the one over all rows
        last; none for fewer than two models, and for more than `MOST_MODELS`.

    Raises:
        MissingScipyError: threadpoolctl is not installed.
    """
    models = sorted(_named(rows.models))
    if not 2 <= len(models) <= MOST_MODELS:
        return []
    clusters = question_clusters(rows.datasets, rows.questions)
    strata = strata_of(rows.datasets, clusters)
    places = rows_by(list(map(str, rows.datasets)))
    chosen = {**(places if len(places) > 1 else {}), "": np.arange(len(rows.labels))}
    samples = [
        sample
        for dataset, where in chosen.items()
        if len((sample := _Sample(rows, dataset, where, clusters, strata)).models) > 1
    ]
    people = [_Sums(sample, rows.labels) for sample in samples]
    lines = [{metric: _Sums(sample, scores) for metric, scores in rows.scores.items()} for sample in samples]
    with one_blas_thread():
        for weights in draws(strata, resamples=resamples, seed=seed):
            for sums in (*people, *(each for found in lines for each in found.values())):
                sums.take(weights)
    return [
        SystemTable(
            sample.dataset, sample.models, labelled.means(0), [sums.line(metric) for metric, sums in found.items()]
        )
        for sample, labelled, found in zip(samples, people, lines, strict=True)
    ]


def _named(models: Sequence[object]) -> set[str]:
    return {str(model) for model in models if str(model)}


class _Sample:
    """Rows of one table.

    Attributes:
        dataset: As in `SystemTable`.
        models: Likewise.
        where: int[n], places of the rows that name a model.
        of_model: int[n], number of the model of each.
        clusters: int[n], question of each.
        labels: float64[n], label of each.
        strata: As `strata_of` gives them.
    """

    def __init__(
        self,
        rows: JudgedRows,
        dataset: str,
        where: NDArray[np.intp],
        clusters: NDArray[np.intp],
        strata: NDArray[np.intp],
    ) -> None:
        self.dataset = dataset
        self.models = sorted(_named([rows.models[row] for row in where]))
        numbers = {model: number for number, model in enumerate(self.models)}
        of_model = np.array([numbers.get(str(rows.models[row]), -1) for row in where], dtype=np.intp)
        self.where = where[of_model >= 0]
        self.of_model = of_model[of_model >= 0]
        self.clusters = clusters[self.where]
        self.labels = rows.labels[self.where]
        self.strata = strata


class _Sums:
    """Sums of one metric by question and model, and what all draws so far make of them."""

    def __init__(self, sample: _Sample, scores: NDArray[np.float64]) -> None:
        there = scores[sample.where]
        scored = ~np.isnan(there)
        models = len(sample.models)
        self._strata = sample.strata
        self.questions, places = np.unique(sample.clusters[scored], return_inverse=True)
        cells = places * models + sample.of_model[scored]
        self._sums = np.stack(
            [
                np.bincount(cells, weights=values, minlength=len(self.questions) * models)
                .astype(np.float64)
                .reshape(len(self.questions), models)
                for values in (there[scored], sample.labels[scored], np.ones(int(scored.sum())))
            ]
        )
        self._drawn: list[NDArray[np.float64]] = []
        self._correlations: list[NDArray[np.float64]] = []

    def take(self, weights: NDArray[np.float64]) -> None:
        means = _means(weights[:, self.questions] @ self._sums)
        self._drawn.append(means)
        self._correlations.append(_correlations(means))

    def means(self, side: int) -> list[Estimate]:
        """Mean score (side 0) or label (side 1) of each model."""
        point, drawn = self._point(), np.concatenate(self._drawn, axis=1)
        return [
            self._estimate(point[side, 0, model], drawn[side, :, model], self._sums[2, :, model] > 0)
            for model in range(drawn.shape[2])
        ]

    def line(self, metric: str) -> SystemMeans:
        correlations = zip(_correlations(self._point()), np.concatenate(self._correlations, axis=1), strict=True)
        return SystemMeans(
            metric,
            self.means(0),
            self.means(1),
            *(self._estimate(value[0], drawn, np.True_) for value, drawn in correlations),
        )

    def _point(self) -> NDArray[np.float64]:
        return _means(self._sums.sum(axis=1, keepdims=True))

    def _estimate(self, value: float, drawn: NDArray[np.float64], behind: NDArray[np.bool_] | np.bool_) -> Estimate:
        questions = self.questions[np.broadcast_to(behind, self.questions.shape)]
        return estimate(float(value), drawn, questions=free_clusters(questions, self._strata))


def _correlations(means: NDArray[np.float64]) -> NDArray[np.float64]:
    """tau-b, Spearman and Pearson, float64[3, draws], of means as `_means` gives them."""
    parts = np.array_split(means, math.ceil(means.shape[1] * means.shape[2] ** 2 / _PAIRS_AT_A_TIME), axis=1)
    return np.concatenate([[how(*part) for how in (kendall_of, spearman_of, pearson_of)] for part in parts], axis=1)


def _means(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """Means of scores and labels, float64[2, draws, models], of their sums and counts, float64[3, draws, models]."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(sums[2] > 0, sums[:2] / sums[2], np.nan))


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
