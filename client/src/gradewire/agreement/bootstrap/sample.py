"""One metric on the rows of one part."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gradewire.agreement.rows import JudgedRows


@dataclass(frozen=True, slots=True)
class Sample:
    """Rows that have a score, by ascending score, so that no draw has to be sorted again.

    Attributes:
        scores: float64[rows], finite.
        verdicts: float64[rows]: 1 right, 0 wrong, NaN without a verdict.
        labels: float64[rows].
        positive: bool[rows], labelled right; None where labels of the table leave [0, 1].
        clusters: int[rows], question of each row.
        failed: Rows of the part without a score.
    """

    scores: NDArray[np.float64]
    verdicts: NDArray[np.float64]
    labels: NDArray[np.float64]
    positive: NDArray[np.bool_] | None
    clusters: NDArray[np.intp]
    failed: int

    @property
    def judged(self) -> int:
        """Rows with a verdict."""
        return int(np.count_nonzero(~np.isnan(self.verdicts)))


@dataclass(frozen=True, slots=True)
class Columns:
    """A table with its questions numbered and its labels read, once for all samples of it.

    Attributes:
        rows: The table.
        clusters: int[rows], question of each row.
        strata: int[questions], data set of each question.
        positive: bool[rows], labelled right; None where a label leaves [0, 1].
    """

    rows: JudgedRows
    clusters: NDArray[np.intp]
    strata: NDArray[np.intp]
    positive: NDArray[np.bool_] | None

    def usable(
        self, metric: str, part: NDArray[np.intp], *, beside: str | None
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which rows of a part have a score, and which of these a verdict: two bool[rows of the part].

        Args:
            metric: Which metric.
            part: int[rows of the part], positions in the table.
            beside: A second metric that has to have them too; None for none.
        """
        scored = np.isfinite(self.rows.scores[metric][part])
        judged = scored & ~np.isnan(self.rows.verdicts[metric][part])
        if beside is not None:
            scored &= np.isfinite(self.rows.scores[beside][part])
            judged &= scored & ~np.isnan(self.rows.verdicts[beside][part])
        return scored, judged

    def sample(
        self, metric: str, part: NDArray[np.intp], *, scored: NDArray[np.bool_], judged: NDArray[np.bool_]
    ) -> Sample:
        """One metric on the rows that are `scored` (as `usable` gives them), its clusters as in the table."""
        kept = np.flatnonzero(scored)
        kept = kept[np.argsort(self.rows.scores[metric][part[kept]], kind="stable")]
        taken = part[kept]
        return Sample(
            scores=self.rows.scores[metric][taken],
            verdicts=np.where(judged[kept], self.rows.verdicts[metric][taken], np.nan),
            labels=self.rows.labels[taken],
            positive=None if self.positive is None else self.positive[taken],
            clusters=self.clusters[taken],
            failed=len(part) - len(kept),
        )
