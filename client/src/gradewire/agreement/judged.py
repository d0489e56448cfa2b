"""One cell of an agreement table: its point values, and its values in every draw."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from gradewire.agreement import weighted
from gradewire.agreement.point import STATISTICS, Statistic, point_values, right, scipy_stats

if TYPE_CHECKING:
    from numpy.typing import NDArray

# More distinct labels than this make Kendall's tau cost a pass each; then a plain loop over fewer draws is used.
MAX_LABEL_LEVELS = 16
LOOPED_DRAWS = 200
# Spearman and Kendall rank every draw anew, ten times the cost of Pearson: their intervals come from fewer draws.
RANK_DRAWS = 1000


@dataclass(slots=True)
class JudgedCell:
    """Rows of a cell that have a score, and what the bootstrap found of them so far.

    Attributes:
        rows: int[scored], their positions in the table.
        failed: Rows of the cell without a score.
        values: Point values by statistic.
    """

    rows: NDArray[np.intp]
    failed: int
    values: dict[Statistic, float]
    _scores: NDArray[np.float64]
    _verdicts: NDArray[np.float64]
    _labels: NDArray[np.float64]
    _order: weighted.Ordering | None
    _label_order: weighted.Ordering | None
    _draws: dict[Statistic, list[NDArray[np.float64]]] = field(
        default_factory=lambda: {statistic: [] for statistic in STATISTICS}
    )

    @classmethod
    def of(
        cls,
        scores: NDArray[np.float64],
        verdicts: NDArray[np.float64],
        labels: NDArray[np.float64],
        rows: NDArray[np.intp],
    ) -> JudgedCell:
        """Takes the cell's `rows` out of whole columns, float64[all rows]; scores that are NaN are failures."""
        scored = rows[~np.isnan(scores[rows])]
        # By ascending score, so that no draw has to be sorted again.
        scored = scored[np.argsort(scores[scored], kind="stable")]
        columns = scores[scored], verdicts[scored], labels[scored]
        return cls(
            rows=scored,
            failed=len(rows) - len(scored),
            values=point_values(*columns),
            _scores=columns[0],
            _verdicts=columns[1],
            _labels=columns[2],
            _order=weighted.Ordering.of(columns[0]) if len(scored) else None,
            _label_order=weighted.Ordering.of(columns[2]) if len(scored) else None,
        )

    @property
    def judged(self) -> int:
        """Rows with a verdict."""
        return int(np.count_nonzero(~np.isnan(self._verdicts)))

    def resample_pearson(self, weights: NDArray[np.float64]) -> None:
        """Takes in draws, for Pearson alone; `weights` as for `resample`."""
        if len(self.rows):
            self._draws["pearson"].append(weighted.pearson(weights[:, self.rows], self._scores, self._labels))

    def resample(self, weights: NDArray[np.float64]) -> None:
        """Takes in draws: float64[draws, all rows], how often each row of the table was drawn."""
        if self._order is None or self._label_order is None:
            return
        drawn = weights[:, self.rows]
        self._draws["pearson"].append(weighted.pearson(drawn, self._scores, self._labels))
        left = RANK_DRAWS - sum(map(len, self._draws["spearman"]))
        if left > 0:
            self._draws["spearman"].append(weighted.spearman(drawn[:left], self._order, self._label_order))
            self._resample_kendall(drawn[:left], self._order, self._label_order)
        positive = right(self._labels)
        if positive is None:
            return
        self._draws["auc"].append(weighted.auc(drawn, self._order, positive))
        judged = ~np.isnan(self._verdicts)
        if judged.any():
            agrees = ((self._verdicts >= 0.5) == positive)[judged].astype(np.float64)
            self._draws["accuracy"].append(weighted.mean(drawn[:, judged], agrees))

    def _resample_kendall(
        self, drawn: NDArray[np.float64], order: weighted.Ordering, label_order: weighted.Ordering
    ) -> None:
        if len(label_order.starts) <= MAX_LABEL_LEVELS:
            self._draws["kendall"].append(weighted.kendall(drawn, order, label_order))
            return
        kendalltau = scipy_stats().kendalltau
        left = LOOPED_DRAWS - sum(map(len, self._draws["kendall"]))
        looped = []
        for weights in drawn[: max(left, 0)]:
            times = weights.astype(np.intp)
            looped.append(kendalltau(np.repeat(self._scores, times), np.repeat(self._labels, times)).statistic)
        self._draws["kendall"].append(np.asarray(looped, dtype=np.float64))

    def resampled(self, statistic: Statistic) -> NDArray[np.float64]:
        """Values of all draws so far, float64[draws]; NaN where undefined, empty where it cannot be computed at all."""
        parts = self._draws[statistic]
        return np.concatenate(parts) if parts else np.array([])
