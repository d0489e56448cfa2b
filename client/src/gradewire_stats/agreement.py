"""Agreement of scores with people, or with an evaluator in their place."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from gradewire_stats.agreement_table import (
    AgreementReport,
    CellAgreement,
    JudgedRows,
    MetricAgreement,
    parts_of,
)
from gradewire_stats.bootstrap import CellDraws, JointBootstrap, mean_over
from gradewire_stats.point_estimates import ALL_STATISTICS, Statistic

COMPARED_STATISTICS: tuple[Statistic, ...] = ("pearson", "auc", "accuracy")


def agreement(  # noqa: PLR0913 - one table, five optional choices about it
    rows: JudgedRows,
    *,
    compare: Sequence[tuple[str, str]] = (),
    compare_statistics: Sequence[Statistic] = COMPARED_STATISTICS,
    statistics: Sequence[Statistic] = ALL_STATISTICS,
    resamples: int = 5000,
    seed: int = 0,
) -> AgreementReport:
    """Compares scores with labels.

    Intervals are percentiles over draws of whole questions, stratified by data set; all metrics, cells and comparisons
    see the same draws. Spearman, Kendall and AUC use the first `RANK_DRAWS` of them. docs/reference/statistics.md
    defines every statistic.

    Args:
        rows: Scores and labels; at least one row.
        compare: Pairs of metric labels whose differences are wanted.
        compare_statistics: Which differences.
        statistics: Which statistics the tables hold.
        resamples: Number of draws.
        seed: Same seed, same intervals.

    Returns:
        One table per metric in the order of `rows.scores`, and one comparison per pair and statistic.

    Raises:
        MissingScipyError: scipy is not installed.
        ValueError: There is no row, columns differ in length, a label is not a number, or `compare` names an unknown
            metric.
    """
    unknown = {name for pair in compare for name in pair} - rows.scores.keys()
    if unknown:
        raise ValueError(f"cannot compare {', '.join(sorted(unknown))}: scored are {', '.join(rows.scores)}")
    bootstrap = JointBootstrap(rows, parts_of(rows))
    tables = {metric: bootstrap.cells(metric, statistics) for metric in rows.scores}
    pairs = [bootstrap.pair(names, compare_statistics) for names in compare]
    bootstrap.run(resamples=resamples, seed=seed)
    return AgreementReport(
        [_metric_agreement(metric, table, statistics) for metric, table in tables.items()],
        [pair.comparison(statistic) for pair in pairs for statistic in compare_statistics],
        seed,
    )


def _metric_agreement(metric: str, table: list[CellDraws], statistics: Sequence[Statistic]) -> MetricAgreement:
    lines = []
    for cell in table:
        part, sample = cell.part, cell.sample
        estimates = {statistic: cell.estimate(statistic) for statistic in statistics}
        counts = len(sample.scores), sample.failed, sample.judged
        names = part.level, part.dataset, part.model, part.group
        lines.append(CellAgreement(*names, *counts, estimates, questions=cell.questions("pearson")))
    finest = [cell for cell in table if cell.part.level == "cell"]
    return MetricAgreement(metric, lines, {statistic: mean_over(finest, statistic) for statistic in statistics})


OF_SCORES: tuple[Statistic, ...] = ("pearson", "spearman", "kendall", "pairwise")
"""Statistics that compare scores with the evaluator's scores; all others take its verdicts for labels."""
ValueT = TypeVar("ValueT")
# Labels outside [0, 1] give no figure of verdicts: those of an evaluator that has none.
_NO_VERDICT = 2.0


def agreement_with_evaluator(  # noqa: PLR0913 - as `agreement`
    rows: JudgedRows,
    verdicts: NDArray[np.float64],
    *,
    compare: Sequence[tuple[str, str]] = (),
    compare_statistics: Sequence[Statistic] = COMPARED_STATISTICS,
    statistics: Sequence[Statistic] = ALL_STATISTICS,
    resamples: int = 5000,
    seed: int = 0,
) -> AgreementReport:
    """Compares metrics with an evaluator.

    Args:
        rows: With the evaluator's scores as labels.
        verdicts: float64[rows], its verdicts: 1 right, 0 wrong; NaN in all rows where it gives none, and then AUC and
            the statistics of verdicts are not defined.
        compare: As `agreement`.
        compare_statistics: As `agreement`.
        statistics: As `agreement`.
        resamples: As `agreement`.
        seed: As `agreement`; the draws of both kinds of statistics are the same.

    Raises:
        MissingScipyError: As `agreement`.
        ValueError: As `agreement`.
    """
    labelled = replace(rows, labels=np.where(np.isnan(verdicts), _NO_VERDICT, verdicts))
    halves = [
        agreement(
            judged,
            compare=compare,
            compare_statistics=[name for name in compare_statistics if (name in OF_SCORES) == of_scores],
            statistics=[name for name in statistics if (name in OF_SCORES) == of_scores],
            resamples=resamples,
            seed=seed,
        )
        for judged, of_scores in ((rows, True), (labelled, False))
    ]
    order = {name: place for place, name in enumerate(compare_statistics)}
    pairs = {pair: place for place, pair in enumerate(compare)}
    comparisons = sorted(
        (found for half in halves for found in half.comparisons),
        key=lambda found: (pairs[found.metric, found.baseline], order[found.statistic]),
    )
    metrics = [_joined(*both, statistics) for both in zip(halves[0].metrics, halves[1].metrics, strict=True)]
    return AgreementReport(metrics, comparisons, seed)


def _joined(by_score: MetricAgreement, by_verdict: MetricAgreement, statistics: Sequence[Statistic]) -> MetricAgreement:
    cells = [
        replace(cell, estimates=_in_order({**cell.estimates, **other.estimates}, statistics))
        for cell, other in zip(by_score.cells, by_verdict.cells, strict=True)
    ]
    return replace(by_score, cells=cells, headline=_in_order({**by_score.headline, **by_verdict.headline}, statistics))


def _in_order(figures: Mapping[Statistic, ValueT], order: Sequence[Statistic]) -> dict[Statistic, ValueT]:
    return {name: figures[name] for name in order}
