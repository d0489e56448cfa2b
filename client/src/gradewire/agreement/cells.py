"""Agreement by data set, by model and in all, with intervals that come from one joint bootstrap over questions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gradewire.agreement.estimates import difference, estimate
from gradewire.agreement.judged import JudgedCell
from gradewire.agreement.point import STATISTICS
from gradewire.agreement.resample import draws, question_clusters
from gradewire.agreement.tables import AgreementReport, CellAgreement, Comparison, Level, MetricAgreement

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from gradewire.agreement.rows import JudgedRows


@dataclass(frozen=True, slots=True)
class _Part:
    """Rows that have data set, model, both or nothing in common."""

    level: Level
    dataset: str
    model: str
    rows: NDArray[np.intp]


def agreement(
    rows: JudgedRows, *, compare: Sequence[tuple[str, str]] = (), resamples: int = 5000, seed: int = 0
) -> AgreementReport:
    """Holds scores against labels.

    Intervals are percentiles over draws of whole questions, stratified by data set; all metrics and cells see the same
    draws.

    Args:
        rows: Scores and labels; at least one row.
        compare: Pairs of metric labels whose Pearson difference is wanted.
        resamples: Number of draws.
        seed: Same seed, same intervals.

    Returns:
        One table per metric in the order of `rows.scores`, and one comparison per pair.

    Raises:
        MissingScipyError: scipy is not installed.
        ValueError: There is no row, or `compare` names an unknown metric.
    """
    if not len(rows.labels):
        raise ValueError("there is no labelled row")
    unknown = {name for pair in compare for name in pair} - rows.scores.keys()
    if unknown:
        raise ValueError(f"cannot compare {', '.join(sorted(unknown))}: scored are {', '.join(rows.scores)}")
    parts = _parts(rows)
    tables = {
        metric: [JudgedCell.of(scores, rows.verdicts[metric], rows.labels, part.rows) for part in parts]
        for metric, scores in rows.scores.items()
    }
    pairs = [_paired(rows, parts, pair) for pair in compare]
    clusters = question_clusters(rows.datasets, rows.questions)
    for weights in draws(_strata(rows.datasets, clusters), resamples=resamples, seed=seed):
        by_row = weights[:, clusters]
        for cell in (cell for table in tables.values() for cell in table):
            cell.resample(by_row)
        for cell in (cell for pair in pairs for side in pair for cell in side):
            cell.resample_pearson(by_row)
    return AgreementReport(
        [_metric_agreement(metric, parts, table) for metric, table in tables.items()],
        [_comparison(pair, parts, cells) for pair, cells in zip(compare, pairs, strict=True)],
    )


def _parts(rows: JudgedRows) -> list[_Part]:
    datasets, models = np.asarray(rows.datasets, dtype=object), np.asarray(rows.models, dtype=object)
    cells = sorted({(str(dataset), str(model)) for dataset, model in zip(datasets, models, strict=True)})
    names, under_test = sorted({dataset for dataset, _ in cells}), sorted({model for _, model in cells})
    parts = [
        _Part("cell", dataset, model, np.flatnonzero((datasets == dataset) & (models == model)))
        for dataset, model in cells
    ]
    # A level that would repeat the lines above it is left out.
    if len(names) > 1 and len(under_test) > 1:
        parts += [_Part("dataset", name, "", np.flatnonzero(datasets == name)) for name in names]
        parts += [_Part("model", "", name, np.flatnonzero(models == name)) for name in under_test]
    if len(cells) > 1:
        parts.append(_Part("all", "", "", np.arange(len(rows.labels))))
    return parts


def _strata(datasets: Sequence[str], clusters: NDArray[np.intp]) -> NDArray[np.intp]:
    numbers = {name: number for number, name in enumerate(sorted(set(datasets)))}
    strata = np.zeros(int(clusters.max()) + 1, dtype=np.intp)
    strata[clusters] = [numbers[name] for name in datasets]
    return strata


def _paired(rows: JudgedRows, parts: list[_Part], pair: tuple[str, str]) -> list[list[JudgedCell]]:
    both = ~np.isnan(rows.scores[pair[0]]) & ~np.isnan(rows.scores[pair[1]])
    return [
        [
            JudgedCell.of(np.where(both, rows.scores[name], np.nan), rows.verdicts[name], rows.labels, part.rows)
            for part in parts
        ]
        for name in pair
    ]


def _metric_agreement(metric: str, parts: list[_Part], table: list[JudgedCell]) -> MetricAgreement:
    lines = []
    for part, cell in zip(parts, table, strict=True):
        estimates = {statistic: estimate(cell.values[statistic], cell.resampled(statistic)) for statistic in STATISTICS}
        lines.append(
            CellAgreement(part.level, part.dataset, part.model, "", len(cell.rows), cell.failed, cell.judged, estimates)
        )
    finest = [cell for part, cell in zip(parts, table, strict=True) if part.level == "cell"]
    headline = {
        statistic: estimate(
            _mean([cell.values[statistic] for cell in finest]),
            _mean_of_draws([cell.resampled(statistic) for cell in finest]),
        )
        for statistic in STATISTICS
    }
    return MetricAgreement(metric, lines, headline)


def _comparison(pair: tuple[str, str], parts: list[_Part], sides: list[list[JudgedCell]]) -> Comparison:
    means, draws_of_means = [], []
    for side in sides:
        finest = [cell for part, cell in zip(parts, side, strict=True) if part.level == "cell"]
        means.append(_mean([cell.values["pearson"] for cell in finest]))
        draws_of_means.append(_mean_of_draws([cell.resampled("pearson") for cell in finest]))
    # The last part is all rows: the only cell, or the level "all".
    first, second = sides[0][-1], sides[1][-1]
    return Comparison(
        metric=pair[0],
        baseline=pair[1],
        statistic="pearson",
        rows=len(first.rows),
        mean_of_cells=difference(means[0] - means[1], draws_of_means[0] - draws_of_means[1]),
        all_rows=difference(
            first.values["pearson"] - second.values["pearson"],
            first.resampled("pearson") - second.resampled("pearson"),
        ),
    )


def _mean(values: list[float]) -> float:
    defined = [value for value in values if not math.isnan(value)]
    return sum(defined) / len(defined) if defined else math.nan


def _mean_of_draws(resampled: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    # A cell that is undefined as it stands stays out; one that a draw left undefined makes that draw undefined.
    defined = [values for values in resampled if not np.isnan(values).all()]
    shortest = min((len(values) for values in defined), default=0)
    if not shortest:
        return np.array([])
    average: NDArray[np.float64] = np.mean([values[:shortest] for values in defined], axis=0)
    return average
