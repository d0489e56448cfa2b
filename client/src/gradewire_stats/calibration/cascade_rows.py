"""Labelled rows as a cascade sees them, and the gain of a judge on the least certain ones."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gradewire_stats.calibration.labelled_rows import Half, half_of, question_key
from gradewire_stats.intervals import draws

DELTA = 0.1
"""Probability with which the bound of a risk may fail, unless it is said otherwise."""
EXACT = 2.0
"""Confidence of an exact match: above that of every probability."""


@dataclass(frozen=True, slots=True, eq=False)
class CascadeRows:
    """Labelled rows.

    Attributes:
        confidence: float64[rows]: EXACT where a reference is matched, else that of `correctness` in its verdict, 0.5 to
            1; 0.5 where the answer denies what it says.
        verdicts: bool[rows], of the cheap metrics.
        scores: float64[rows], of the cheap metrics: 1 where a reference is matched, else the probability.
        right: bool[rows], people's.
        judge_verdicts: float64[rows], 1 right, 0 wrong, NaN where the judge was not asked or failed.
        judge_scores: float64[rows], the judge's score; NaN where there is none.
        questions: Of each row, as written; a blank one is a question of its own.
    """

    confidence: NDArray[np.float64]
    verdicts: NDArray[np.bool_]
    scores: NDArray[np.float64]
    right: NDArray[np.bool_]
    judge_verdicts: NDArray[np.float64]
    judge_scores: NDArray[np.float64]
    questions: Sequence[str]

    def __len__(self) -> int:
        return len(self.right)

    @classmethod
    def of(  # noqa: PLR0913 - six columns
        cls,
        *,
        exact: NDArray[np.bool_],
        probability: NDArray[np.float64],
        denied: NDArray[np.bool_],
        right: NDArray[np.bool_],
        judge_verdicts: NDArray[np.float64],
        judge_scores: NDArray[np.float64],
        questions: Sequence[str],
    ) -> "CascadeRows":
        """Rows from what metrics say.

        Args:
            exact: bool[rows], `exact_match`.
            probability: float64[rows], of `correctness`.
            denied: bool[rows], UNCERTAIN at `correctness?confidence=0.5`.
            right: bool[rows], people's.
            judge_verdicts: float64[rows], NaN where there is none.
            judge_scores: float64[rows], the judge's score; NaN where there is none.
            questions: Of each row.
        """
        sure = np.where(denied, 0.5, np.maximum(probability, 1 - probability))
        return cls(
            confidence=np.where(exact, EXACT, sure),
            verdicts=exact | (probability >= 0.5),
            scores=np.where(exact, 1.0, probability),
            right=right,
            judge_verdicts=judge_verdicts,
            judge_scores=judge_scores,
            questions=questions,
        )

    def where(self, kept: NDArray[np.bool_]) -> "CascadeRows":
        """The rows of a mask, bool[rows]."""
        return CascadeRows(
            confidence=self.confidence[kept],
            verdicts=self.verdicts[kept],
            scores=self.scores[kept],
            right=self.right[kept],
            judge_verdicts=self.judge_verdicts[kept],
            judge_scores=self.judge_scores[kept],
            questions=[question for question, keep in zip(self.questions, kept, strict=True) if keep],
        )

    def half(self, half: Half) -> "CascadeRows":
        """The rows whose question belongs to a half."""
        return self.where(np.array([half_of(question) == half for question in self.questions], dtype=np.bool_))

    @property
    def clusters(self) -> NDArray[np.intp]:
        """intp[rows], number of each row's question, from 0 without gaps."""
        keys = [question_key(question) or f"\0{row}" for row, question in enumerate(self.questions)]
        numbers: dict[str, int] = {}
        return np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.intp)

    @property
    def judged(self) -> NDArray[np.bool_]:
        """bool[rows], whether the judge gave a verdict."""
        return ~np.isnan(self.judge_verdicts)


SHARES: Final = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)
LEAST_ROWS: Final = 20
"""Judged rows without which nothing is said of a judge."""
EVERYWHERE: Final = EXACT + 1
_ERROR: Final = 0.05


@dataclass(frozen=True, slots=True)
class JudgeGain:
    """Judge and cheap metrics on the rows below a confidence.

    Attributes:
        share: Of all rows, at most so many are below it.
        below: The confidence.
        rows: Judged rows there.
        cheap: Their accuracy by the cheap metrics; NaN without rows.
        judge: Their accuracy by the judge; NaN without rows.
        low: Lower end of the paired interval of judge minus cheap, over questions; NaN where there are too few rows.
        high: Upper end of it.
        adds: Whether the interval lies above 0.
    """

    share: float
    below: float
    rows: int
    cheap: float
    judge: float
    low: float
    high: float
    adds: bool

    def to_dict(self) -> dict[str, Any]:
        """For JSON; NaN is left out."""
        return {name: value for name, value in asdict(self).items() if value == value}  # noqa: PLR0124 - NaN is not


def judge_gains(rows: CascadeRows, *, resamples: int, seed: int) -> tuple[JudgeGain, ...]:
    """Compares judge and cheap metrics among the least certain SHARES of the rows.

    All intervals together miss with a probability of 5 % (Bonferroni): the widest share whose interval lies above 0 is
    taken, and with more looks one of them would lie there by luck.
    """
    ordered = np.sort(rows.confidence)
    clusters = rows.clusters
    found = []
    for share in SHARES:
        most = math.floor(share * len(rows) + 1e-9)
        below = EVERYWHERE if most >= len(rows) else float(ordered[most])
        inside = rows.judged & (rows.confidence < below)
        cheap = (rows.verdicts == rows.right)[inside].astype(np.float64)
        judge = ((rows.judge_verdicts == 1) == rows.right)[inside].astype(np.float64)
        low, high = math.nan, math.nan
        if len(cheap) >= LEAST_ROWS:
            low, high = _interval(judge - cheap, clusters[inside], resamples=resamples, seed=seed)
        found.append(
            JudgeGain(
                share=share,
                below=below,
                rows=len(cheap),
                cheap=float(cheap.mean()) if len(cheap) else math.nan,
                judge=float(judge.mean()) if len(judge) else math.nan,
                low=low,
                high=high,
                adds=low > 0,
            )
        )
    return tuple(found)


def judged_below(gains: Sequence[JudgeGain]) -> float | None:
    """The confidence below which the judge is worth asking: that of the largest share where it adds; None: nowhere."""
    return max((each.below for each in gains if each.adds), default=None)


def _interval(
    differences: NDArray[np.float64], clusters: NDArray[np.intp], *, resamples: int, seed: int
) -> tuple[float, float]:
    """Of the mean, by draws of whole questions."""
    _, own = np.unique(clusters, return_inverse=True)
    sums, counts = np.bincount(own, weights=differences), np.bincount(own)
    strata = np.zeros(len(counts), dtype=np.intp)
    means = [(weights @ sums) / (weights @ counts) for weights in draws(strata, resamples=resamples, seed=seed)]
    tail = _ERROR / len(SHARES) / 2
    low, high = np.quantile(np.concatenate(means), [tail, 1 - tail])
    return float(low), float(high)
