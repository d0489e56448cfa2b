"""Quality of probabilities on held-out rows and unseen sources, and of verdicts where a metric may abstain."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gradewire_stats.agreement.rows import RIGHT_FROM
from gradewire_stats.agreement.statistics import auc
from gradewire_stats.calibration.evaluate_fit import overruled, probabilities, uncertain
from gradewire_stats.calibration.labelled_rows import LEAST_OF_A_CLASS, LabelledFeatures, left_out_sources

BINS: Final = 15


def calibration_error(probabilities: NDArray[np.float64], right: NDArray[np.bool_], *, bins: int = BINS) -> float:
    """Expected calibration error over bins of equal mass, 0 to 1.

    Rows are sorted by probability and cut into `bins` of equal size (the first ones hold one row more where they do
    not come out even); the mean of |mean probability - share of right rows|, weighed by rows. Source: Nixon et al.
    2019, *Measuring Calibration in Deep Learning*.

    Args:
        probabilities: float64[rows], at least one.
        right: bool[rows].
        bins: At least 1.
    """
    order = np.argsort(probabilities, kind="stable")
    gaps = [
        len(rows) * abs(float(probabilities[rows].mean()) - float(right[rows].mean()))
        for rows in np.array_split(order, min(bins, len(order)))
    ]
    return sum(gaps) / len(order)


def brier_score(probabilities: NDArray[np.float64], right: NDArray[np.bool_]) -> float:
    """Mean squared difference of probability and outcome, 0 to 1. Source: Brier 1950."""
    return float(np.mean((probabilities - right) ** 2))


def accuracy_at_coverage(
    probabilities: NDArray[np.float64], right: NDArray[np.bool_], coverages: Sequence[float]
) -> list[float]:
    """Accuracy of the verdicts (right from 0.5) of the most confident rows, for each share of rows in (0, 1].

    Confidence is max(p, 1 - p); of equal ones the first rows are kept. Source: El-Yaniv and Wiener 2010, *On the
    Foundations of Noise-free Selective Classification*.
    """
    order = np.argsort(-np.maximum(probabilities, 1 - probabilities), kind="stable")
    hits = np.cumsum(((probabilities >= 0.5) == right)[order])
    kept = [max(1, round(coverage * len(order))) for coverage in coverages]
    return [float(hits[rows - 1]) / rows for rows in kept]


def probability_quality(probabilities: NDArray[np.float64], right: NDArray[np.bool_]) -> dict[str, float]:
    """`accuracy`, `pearson`, `auc`, `brier` and `ece` of float64[rows], six digits each."""
    figures = {
        "accuracy": float(np.mean((probabilities >= RIGHT_FROM) == right)),
        "pearson": float(np.corrcoef(probabilities, right)[0, 1]),
        "auc": auc(probabilities, right),
        "brier": brier_score(probabilities, right),
        "ece": calibration_error(probabilities, right),
    }
    return {name: round(value, 6) for name, value in figures.items()}


CONFIDENCE: Final = 0.9
COVERAGES: Final = (0.9, 0.8, 0.5)
MOST_ERROR: Final = 0.1
LEAST_HELD: Final = 1 / 3


@dataclass(frozen=True, slots=True)
class TransferStatistics:
    """What a fit on all other sources is worth on the rows of one.

    Attributes:
        pearson: Correlation of probability and label; NaN where labels or probabilities are all the same, as `auc`.
        ece: Expected calibration error, 15 bins of equal mass.
        at_coverage: Accuracy of the most certain share of rows, for each of COVERAGES.
        uncertain: Share of rows that are UNCERTAIN at the confidence 0.9: in the band, or overruled.
        accuracy_certain: Of the others; NaN where there are none.
        held: Share of the wrong verdicts that are UNCERTAIN; NaN where none is wrong.
    """

    source: str
    rows: int
    pearson: float
    auc: float
    accuracy: float
    ece: float
    at_coverage: tuple[float, ...]
    uncertain: float
    accuracy_certain: float
    held: float

    @property
    def transfers(self) -> bool:
        """Whether the probability is off by at most 0.1 on average and the band holds a third of the wrong verdicts."""
        return not (self.ece > MOST_ERROR or self.held < LEAST_HELD)


def transfer_statistics(
    rows: LabelledFeatures, fit: Callable[[LabelledFeatures], Mapping[str, Any]]
) -> Iterator[TransferStatistics]:
    """Figures of each source by a `fit` on the others, which have not the row's question either.

    A source without which too few right or wrong answers are left is skipped.
    """
    for source, inside in left_out_sources(rows):
        others = rows.where(rows.without_shared_questions(inside))
        if min(others.right.sum(), (~others.right).sum()) < LEAST_OF_A_CLASS:
            continue
        form, mine = fit(others), rows.where(inside)
        shapes = None if mine.shapes is None else mine.shapes.values
        found = probabilities(form, mine.values, shapes)
        flagged = uncertain(form, found, CONFIDENCE, shapes) | overruled(form, mine.values, shapes)
        yield measured(source, found, mine.right, flagged)


def measured(
    source: str, found: NDArray[np.float64], right: NDArray[np.bool_], flagged: NDArray[np.bool_]
) -> TransferStatistics:
    """Figures of probabilities float64[rows], and of those whose verdicts are `flagged`."""
    hits = (found >= RIGHT_FROM) == right
    one_class = bool(right.all() or not right.any())
    return TransferStatistics(
        source=source,
        rows=len(found),
        pearson=np.nan if one_class or np.ptp(found) == 0 else float(np.corrcoef(found, right)[0, 1]),
        auc=np.nan if one_class else auc(found, right),
        accuracy=float(hits.mean()),
        ece=calibration_error(found, right),
        at_coverage=tuple(accuracy_at_coverage(found, right, COVERAGES)),
        uncertain=float(flagged.mean()),
        accuracy_certain=float(hits[~flagged].mean()) if not flagged.all() else np.nan,
        held=float(flagged[~hits].mean()) if not hits.all() else np.nan,
    )


def transfer_warnings(figures: tuple[TransferStatistics, ...]) -> Iterator[str]:
    """A sentence for each source to which a fit on the others does not travel."""
    for each in figures:
        if not each.transfers:
            held = f"UNCERTAIN rows hold {each.held:.0%} of its wrong verdicts"
            held += f" (less than {LEAST_HELD:.0%} is too little)"
            if np.isnan(each.held):
                held = "no verdict is wrong"
            yield (
                f"the fit does not travel to {each.source!r}: by a fit on the other sources its probabilities are off "
                f"by {each.ece:.2f} on average (ECE; more than {MOST_ERROR} is too much) and {held}: label rows that "
                "are like those you will grade"
            )


@dataclass(frozen=True, slots=True)
class Abstention:
    """Accuracy of one metric over rows with a verdict and a label, with and without the uncertain verdicts.

    Attributes:
        judged: Such rows.
        uncertain: Those of them whose verdict the metric does not trust.
        accuracy: Share of right verdicts over all of them, 0 to 1.
        accuracy_certain: The same over those that it trusts; NaN where there is none.
    """

    judged: int
    uncertain: int
    accuracy: float
    accuracy_certain: float


def abstention(
    verdicts: NDArray[np.float64], certain: NDArray[np.bool_], labels: NDArray[np.float64]
) -> Abstention | None:
    """Compares verdicts with labels.

    Args:
        verdicts: float64[rows]: 1 right, 0 wrong, NaN without a verdict.
        certain: bool[rows], whether the metric trusts them.
        labels: float64[rows] in [0, 1], right from 0.5.

    Returns:
        None where no verdict is uncertain, or labels lie outside [0, 1], so that nobody said what counts as right.
    """
    judged = ~np.isnan(verdicts) & ~np.isnan(labels)
    if not judged.any() or certain[judged].all() or labels[judged].min() < 0 or labels[judged].max() > 1:
        return None
    hits = (verdicts[judged] == 1) == (labels[judged] >= RIGHT_FROM)
    trusted = certain[judged]
    return Abstention(
        judged=int(judged.sum()),
        uncertain=int((~trusted).sum()),
        accuracy=float(hits.mean()),
        accuracy_certain=float(hits[trusted].mean()) if trusted.any() else float("nan"),
    )
