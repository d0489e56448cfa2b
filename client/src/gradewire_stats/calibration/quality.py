"""The quality of probabilities (on held-out rows and new sources), and of verdicts by a metric that may abstain."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gradewire_stats.agreement.rows import RIGHT_FROM
from gradewire_stats.agreement.statistics import auc
from gradewire_stats.calibration.evaluate_fit import doubted, overruled, probabilities, uncertain
from gradewire_stats.calibration.labelled_rows import LEAST_OF_A_CLASS, LabelledFeatures, left_out_sources

BINS: Final = 15


def calibration_error(probabilities: NDArray[np.float64], right: NDArray[np.bool_], *, bins: int = BINS) -> float:
    """Return the expected calibration error over bins of equal mass, 0 to 1.

    Rows are sorted by probability and split into `bins` bins of equal size (or sizes that differ by one, larger bins
    first). The error is the mean of |mean probability - share of right rows| over the bins, weighted by rows. Source:
    Nixon et al. 2019, *Measuring Calibration in Deep Learning*.

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
    """Return the mean squared difference between probability and outcome, 0 to 1. Source: Brier 1950."""
    return float(np.mean((probabilities - right) ** 2))


def accuracy_at_coverage(
    probabilities: NDArray[np.float64], right: NDArray[np.bool_], coverages: Sequence[float]
) -> list[float]:
    """Return the accuracy on the most confident rows, for each share of rows in `coverages`.

    A probability of 0.5 or more means the verdict "right". The confidence is max(p, 1 - p). Among rows with equal
    confidence, the first rows are kept.
    Source: El-Yaniv and Wiener 2010, *On the Foundations of Noise-free Selective Classification*.
    """
    order = np.argsort(-np.maximum(probabilities, 1 - probabilities), kind="stable")
    hits = np.cumsum(((probabilities >= 0.5) == right)[order])
    kept = [max(1, round(coverage * len(order))) for coverage in coverages]
    return [float(hits[rows - 1]) / rows for rows in kept]


def probability_quality(probabilities: NDArray[np.float64], right: NDArray[np.bool_]) -> dict[str, float]:
    """Return `accuracy`, `pearson`, `auc`, `brier` and `ece`, rounded to six decimals.

    `probabilities` are float64[rows], and `right` is bool[rows].
    """
    values = {
        "accuracy": float(np.mean((probabilities >= RIGHT_FROM) == right)),
        "pearson": float(np.corrcoef(probabilities, right)[0, 1]),
        "auc": auc(probabilities, right),
        "brier": brier_score(probabilities, right),
        "ece": calibration_error(probabilities, right),
    }
    return {name: round(value, 6) for name, value in values.items()}


CONFIDENCE: Final = 0.9
COVERAGES: Final = (0.9, 0.8, 0.5)
MOST_ERROR: Final = 0.1
LEAST_HELD: Final = 1 / 3


@dataclass(frozen=True, slots=True)
class TransferStatistics:
    """The quality that a fit on all other sources reaches on the rows from one source.

    Attributes:
        pearson: Correlation of probability and label, or NaN if labels or probabilities are all equal.
        auc: Area under the ROC curve, or NaN if labels are all equal.
        ece: Expected calibration error over 15 bins of equal mass.
        at_coverage: Accuracy on the most certain share of rows, for each share in COVERAGES.
        uncertain: Share of rows that are UNCERTAIN at the confidence 0.9, because they are in the band, overruled or
            doubted.
        accuracy_certain: Accuracy on the rows that are not UNCERTAIN, or NaN without such rows.
        held: Share of the wrong verdicts that are UNCERTAIN, or NaN without wrong verdicts.
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
        """True if `ece` is at most 0.1 and at least a third of the wrong verdicts are UNCERTAIN."""
        return not (self.ece > MOST_ERROR or self.held < LEAST_HELD)


def transfer_statistics(
    rows: LabelledFeatures, fit: Callable[[LabelledFeatures], Mapping[str, Any]]
) -> Iterator[TransferStatistics]:
    """Yield, for each source, the quality of a fit that has seen neither the source nor the source's questions.

    A source is skipped if too few right or too few wrong answers remain for the fit.
    """
    for source, inside in left_out_sources(rows):
        others = rows.where(rows.without_shared_questions(inside))
        if min(others.right.sum(), (~others.right).sum()) < LEAST_OF_A_CLASS:
            continue
        form, mine = fit(others), rows.where(inside)
        shapes = None if mine.shapes is None else mine.shapes.values
        found = probabilities(form, mine.values, shapes)
        flagged = uncertain(form, found, CONFIDENCE, shapes) | overruled(form, mine.values, shapes)
        flagged |= doubted(form, mine.values, found)
        yield measured(source, found, mine.right, flagged)


def measured(
    source: str, found: NDArray[np.float64], right: NDArray[np.bool_], flagged: NDArray[np.bool_]
) -> TransferStatistics:
    """Return the quality of the probabilities `found`, float64[rows]. `flagged` is True for UNCERTAIN rows."""
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


def transfer_warnings(transfer: tuple[TransferStatistics, ...]) -> Iterator[str]:
    """Yield a warning for each source on which a fit on all other sources performs poorly."""
    for each in transfer:
        if not each.transfers:
            held = f"{each.held:.0%} of its wrong verdicts are UNCERTAIN (at least {LEAST_HELD:.0%} are needed)"
            if np.isnan(each.held):
                held = "no verdict is wrong"
            yield (
                f"the fit does not transfer to {each.source!r}: a fit on the other sources has a mean error of "
                f"{each.ece:.2f} (ECE; at most {MOST_ERROR} is good), and {held}. Label rows like the ones to grade"
            )


@dataclass(frozen=True, slots=True)
class Abstention:
    """A metric's accuracy over rows with a verdict and a label, once including and once excluding uncertain verdicts.

    Attributes:
        judged: Number of rows with a verdict and a label.
        uncertain: Number of these rows with an uncertain verdict.
        accuracy: Share of right verdicts over these rows, 0 to 1.
        accuracy_certain: Share of right verdicts over rows with a certain verdict, or NaN without such rows.
    """

    judged: int
    uncertain: int
    accuracy: float
    accuracy_certain: float


def abstention(
    verdicts: NDArray[np.float64], certain: NDArray[np.bool_], labels: NDArray[np.float64]
) -> Abstention | None:
    """Compare verdicts with labels.

    Args:
        verdicts: float64[rows]: 1 (right), 0 (wrong) or NaN (no verdict).
        certain: bool[rows], False if the metric marks its verdict as uncertain.
        labels: float64[rows] in [0, 1]. 0.5 or more is right.

    Returns:
        The accuracy, or None if no verdict is uncertain, or if a label lies outside [0, 1].
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
