"""How a fit does on rows of a source that it has not seen: each source is left out in turn."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gradewire.agreement.fitting.labelled_features import LEAST_OF_A_CLASS, LabelledFeatures
from gradewire.agreement.fitting.probability_figures import accuracy_at_coverage, calibration_error
from gradewire.agreement.fitting.probability_model import left_out_sources
from gradewire.agreement.fitting.stored_band import uncertain
from gradewire.agreement.fitting.stored_evaluation import overruled, probabilities
from gradewire.agreement.point_estimates import RIGHT_FROM, auc

CONFIDENCE: Final = 0.9
COVERAGES: Final = (0.9, 0.8, 0.5)
MOST_ERROR: Final = 0.1
LEAST_HELD: Final = 1 / 3


@dataclass(frozen=True, slots=True)
class TravelFigures:
    """What a fit on all other sources is worth on the rows of one.

    Attributes:
        source: The one that was left out.
        rows: Its rows.
        pearson: Correlation of probability and label; NaN where labels or probabilities are all the same, as `auc`.
        auc: Area under the ROC curve.
        accuracy: Share of right verdicts.
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
    def travels(self) -> bool:
        """Whether the probability is off by at most 0.1 on average and the band holds a third of the wrong verdicts."""
        return not (self.ece > MOST_ERROR or self.held < LEAST_HELD)


def travel_figures(
    rows: LabelledFeatures, fit: Callable[[LabelledFeatures], Mapping[str, Any]]
) -> Iterator[TravelFigures]:
    """Figures of each source by a `fit` on the others, which have not the row's question either.

    A source without which too few right or wrong answers are left is skipped.
    """
    for source, inside in left_out_sources(rows):
        others = rows.where(rows.unasked(inside))
        if min(others.right.sum(), (~others.right).sum()) < LEAST_OF_A_CLASS:
            continue
        form, mine = fit(others), rows.where(inside)
        shapes = None if mine.shapes is None else mine.shapes.values
        found = probabilities(form, mine.values, shapes)
        flagged = uncertain(form, found, CONFIDENCE, shapes) | overruled(form, mine.values, shapes)
        yield measured(source, found, mine.right, flagged)


def measured(
    source: str, found: NDArray[np.float64], right: NDArray[np.bool_], flagged: NDArray[np.bool_]
) -> TravelFigures:
    """Figures of probabilities float64[rows], and of those whose verdicts are `flagged`."""
    hits = (found >= RIGHT_FROM) == right
    one_class = bool(right.all() or not right.any())
    return TravelFigures(
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


def travel_warnings(figures: tuple[TravelFigures, ...]) -> Iterator[str]:
    """A sentence for each source to which a fit on the others does not travel."""
    for each in figures:
        if not each.travels:
            held = f"UNCERTAIN rows hold {each.held:.0%} of its wrong verdicts"
            held += f" (less than {LEAST_HELD:.0%} is too little)"
            if np.isnan(each.held):
                held = "no verdict is wrong"
            yield (
                f"the fit does not travel to {each.source!r}: by a fit on the other sources its probabilities are off "
                f"by {each.ece:.2f} on average (ECE; more than {MOST_ERROR} is too much) and {held}: label rows that "
                "are like those you will grade"
            )
