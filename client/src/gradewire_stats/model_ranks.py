"""Rank models by metrics and by human labels: mean scores (SFVE, table 3) and rank correlations over models."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gradewire_stats import one_blas_thread
from gradewire_stats.agreement.rows import JudgedRows, rows_by
from gradewire_stats.bootstrap import Estimate, draws, estimate, free_clusters, question_clusters, strata_of

LEAST_MODELS = 3
"""Minimum number of models for a correlation. With two models, a correlation could only be 1 or -1."""
MOST_MODELS = 100
"""Maximum number of models for tables, because each draw compares every pair of models."""
# Maximum number of model pairs, over all draws, to compare at a time.
_PAIRS_AT_A_TIME = 4_000_000
# Means are rounded to this number of decimals, because sums of the same labels in a different order can differ by
# rounding.
_DECIMALS = 12
# Name for the labels as an additional metric. No metric has this name.
_HUMAN = "\x00human"


@dataclass(frozen=True, slots=True)
class SystemMeans:
    """A metric's mean scores for the models under test, and their correlation with mean labels.

    Attributes:
        means: Each model's mean score, over the rows that the metric scored.
        failed: Number of rows that the metric did not score.
        kendall: Kendall's tau-b between mean scores and mean labels over the models. All three correlations are NaN if
            there are fewer than `LEAST_MODELS` models, or if all mean scores or all mean labels are equal.
    """

    metric: str
    means: Sequence[Estimate]
    people: Sequence[Estimate]
    """Each model's mean label over the rows that the metric scored."""
    failed: int
    kendall: Estimate
    spearman: Estimate
    pearson: Estimate


@dataclass(frozen=True, slots=True)
class SystemTable:
    """Models' mean scores by all metrics, on a data set or on all rows.

    Attributes:
        dataset: The data set's name, or "" for all rows.
        models: Models with answers in the table. All sequences of estimates are in this order.
        questions: Number of labelled questions.
        common_questions: Number of those that all models answered. If there are fewer, ranks compare different
            questions.
    """

    dataset: str
    models: Sequence[str]
    people: Sequence[Estimate]
    """Each model's mean label, over all rows of the table."""
    lines: Sequence[SystemMeans]
    questions: int
    common_questions: int


def system_tables(rows: JudgedRows, *, resamples: int = 5000, seed: int = 0) -> list[SystemTable]:
    """Compute mean scores of models, and rank correlations between mean scores and mean labels.

    The results are for each data set, and for all rows together.

    Compare a metric's means between models, but do not compare means between metrics, because metrics have different
    scales. Over several data sets, models that answered easier data sets rank higher by labels and by metrics.

    Args:
        rows: Scores and labels. A metric's means and mean labels use only rows that the metric scored.
        resamples: Number of draws of whole questions, stratified by data set.
        seed: Seed for the draws.

    Returns:
        A table for each data set if there are several, then a table over all rows. The list is empty for fewer than
        two models or more than `MOST_MODELS`.

    Raises:
        MissingScipyError: threadpoolctl is not installed.
    """
    if not 2 <= len(models_of(rows)) <= MOST_MODELS:
        return []
    clusters = question_clusters(rows.datasets, rows.questions)
    strata = strata_of(rows.datasets, clusters)
    places = rows_by(list(map(str, rows.datasets)))
    several = {name: where for name, where in places.items() if name and len(places) > 1}
    labelled = {_HUMAN: rows.labels, **rows.scores}
    tables = []
    for dataset, where in (*several.items(), ("", np.arange(len(rows.labels)))):
        by_model = rows_by([str(rows.models[row]) for row in where])
        models = [model for model in by_model if model]
        if len(models) < 2:
            continue
        of_model = np.full(len(rows.labels), -1, dtype=np.intp)
        for number, model in enumerate(models):
            of_model[where[by_model[model]]] = number
        sums = {name: _Sums(column, rows.labels, clusters, of_model) for name, column in labelled.items()}
        tables.append((dataset, models, sums))
    with one_blas_thread():
        for weights in draws(strata, resamples=resamples, seed=seed):
            for _, _, sums in tables:
                for each in sums.values():
                    each.take(weights)
    return [
        SystemTable(
            dataset,
            models,
            sums[_HUMAN].line("", strata).people,
            [sums[metric].line(metric, strata) for metric in rows.scores],
            len(sums[_HUMAN].questions),
            sums[_HUMAN].common_questions,
        )
        for dataset, models, sums in tables
    ]


def models_of(rows: JudgedRows) -> list[str]:
    """Return the distinct names of the models under test, sorted."""
    return sorted({str(model) for model in rows.models if str(model)})


class _Sums:
    """A metric's sums by question and model, and the models' means in all draws so far.

    `of_model` is each row's model number, or -1 for rows in other data sets or without a model.
    """

    def __init__(
        self,
        scores: NDArray[np.float64],
        labels: NDArray[np.float64],
        clusters: NDArray[np.intp],
        of_model: NDArray[np.intp],
    ) -> None:
        where, models = np.flatnonzero(of_model >= 0), int(of_model.max()) + 1
        scored = where[~np.isnan(scores[where])]
        self._failed = len(where) - len(scored)
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
        self.common_questions = int(np.count_nonzero((self._sums[2] > 0).all(axis=1)))
        self._drawn: list[NDArray[np.float64]] = []
        self._correlations: list[NDArray[np.float64]] = []

    def take(self, weights: NDArray[np.float64]) -> None:
        means = _means(weights[:, self.questions] @ self._sums)
        self._drawn.append(means)
        self._correlations.append(_correlations(means))

    def line(self, metric: str, strata: NDArray[np.intp]) -> SystemMeans:
        point = _means(self._sums.sum(axis=1, keepdims=True))
        drawn, correlations = np.concatenate(self._drawn, axis=1), np.concatenate(self._correlations, axis=1)
        behind = free_clusters(self.questions, strata)
        kendall, spearman, pearson = (
            estimate(float(value[0]), values, questions=behind)
            for value, values in zip(_correlations(point), correlations, strict=True)
        )
        of_model = [free_clusters(self.questions[count > 0], strata) for count in self._sums[2].T]
        means, human = (
            [
                estimate(float(point[side, 0, model]), drawn[side, :, model], questions=questions)
                for model, questions in enumerate(of_model)
            ]
            for side in (0, 1)
        )
        return SystemMeans(metric, means, human, self._failed, kendall, spearman, pearson)


def _means(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the means of scores and of labels, float64[2, draws, models].

    `sums` are sums of scores, sums of labels and counts, float64[3, draws, models].
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.round(np.where(sums[2] > 0, sums[:2] / sums[2], np.nan), _DECIMALS))


def _correlations(means: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return Kendall's tau-b, Spearman and Pearson between mean scores and mean labels, float64[3, draws]."""
    at_a_time = max(1, _PAIRS_AT_A_TIME // means.shape[2] ** 2)
    found = [
        [how(*means[:, start : start + at_a_time]) for how in (kendall_of, spearman_of, pearson_of)]
        for start in range(0, means.shape[1], at_a_time)
    ]
    return np.concatenate(found, axis=1)


def _difference_signs(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the sign of the difference between any two models' values, float64[draws, models, models]."""
    return np.sign(values[:, :, None] - values[:, None, :])


def kendall_of(x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return Kendall's tau-b over models in every draw.

    Args:
        x: float64[draws, models].
        y: float64[draws, models].

    Returns:
        float64[draws]. NaN if `x` or `y` is constant, a model has no mean, or there are too few models
        (`LEAST_MODELS`).
    """
    if x.shape[1] < LEAST_MODELS:
        return np.full(len(x), np.nan)
    signs_x, signs_y = _difference_signs(x), _difference_signs(y)
    untied = np.sqrt((signs_x**2).sum(axis=(1, 2)) * (signs_y**2).sum(axis=(1, 2)))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(untied > 0, (signs_x * signs_y).sum(axis=(1, 2)) / untied, np.nan))


def spearman_of(x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the rank correlation over models in every draw, with arguments and result as in `kendall_of`."""
    # A model's sum of signs is twice the distance between its midrank and the mean rank.
    return pearson_of(_difference_signs(x).sum(axis=2), _difference_signs(y).sum(axis=2))


def pearson_of(x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the linear correlation over models in every draw, with arguments and result as in `kendall_of`."""
    if x.shape[1] < LEAST_MODELS:
        return np.full(len(x), np.nan)
    dx, dy = x - x.mean(axis=1, keepdims=True), y - y.mean(axis=1, keepdims=True)
    spread = np.sqrt((dx**2).sum(axis=1) * (dy**2).sum(axis=1))
    # Rounding can leave a small spread for equal models. Treat such a spread as 0.
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(spread > 1e-15, (dx * dy).sum(axis=1) / spread, np.nan))
