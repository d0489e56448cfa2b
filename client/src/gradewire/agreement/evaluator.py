"""Agreement with an evaluator in the place of people: scores with its scores, verdicts with its verdicts."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from gradewire.agreement.cells import COMPARED_STATISTICS, agreement
from gradewire.agreement.point_estimates import ALL_STATISTICS, Statistic
from gradewire.agreement.result_tables import AgreementReport, MetricAgreement
from gradewire.agreement.rows import JudgedRows

OF_SCORES: tuple[Statistic, ...] = ("pearson", "spearman", "kendall", "pairwise")
"""Statistics that compare scores with the evaluator's scores; all others take its verdicts for labels."""
FigureT = TypeVar("FigureT")
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


def _in_order(figures: Mapping[Statistic, FigureT], order: Sequence[Statistic]) -> dict[Statistic, FigureT]:
    return {name: figures[name] for name in order}
