"""How a fit of `auto` holds on rows that it has not seen."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gradewire.agreement.fitting.cascade.fit import CascadeFit
from gradewire.agreement.fitting.cascade.rows import CascadeRows


@dataclass(frozen=True, slots=True)
class HeldRisk:
    """What the band of a risk gives on other rows.

    Attributes:
        risk: The bound.
        rows: All of them.
        accepted: Those whose verdict is accepted without the judge.
        wrong: Wrong ones among these.
        asked: Rows that the judge is asked about.
        accuracy: Share of right verdicts of `auto`, all rows; NaN where the judge would be asked about a row that it
            has not judged.
    """

    risk: float
    rows: int
    accepted: int
    wrong: int
    asked: int
    accuracy: float

    @property
    def wrong_share(self) -> float:
        """Of the accepted verdicts; NaN without any."""
        return self.wrong / self.accepted if self.accepted else math.nan

    @property
    def held(self) -> bool:
        """Whether at most the share `risk` of the accepted verdicts is wrong; nothing accepted holds it."""
        return self.wrong <= self.risk * self.accepted


def held_risks(fit: CascadeFit, rows: CascadeRows) -> tuple[HeldRisk, ...]:
    """Of every risk that was fitted, on rows that the fit has not seen."""
    wrong = rows.verdicts != rows.right
    found = []
    for each in fit.risks:
        accepted = rows.confidence >= each.accepts_from
        asked = asked_rows(fit, rows, each.accepts_from)
        found.append(
            HeldRisk(
                risk=each.risk,
                rows=len(rows),
                accepted=int(accepted.sum()),
                wrong=int((wrong & accepted).sum()),
                asked=int(asked.sum()),
                accuracy=_accuracy(rows, asked),
            )
        )
    return tuple(found)


def asked_rows(fit: CascadeFit, rows: CascadeRows, accepts_from: float) -> NDArray[np.bool_]:
    """bool[rows], whether the judge decides: below the threshold, and where it is worth asking."""
    below = fit.asked_below or 0.0
    return np.asarray(rows.confidence < min(accepts_from, below))


def _accuracy(rows: CascadeRows, asked: NDArray[np.bool_]) -> float:
    if (asked & ~rows.judged).any():
        return math.nan
    verdicts = np.where(asked, rows.judge_verdicts == 1, rows.verdicts)
    return float(np.mean(verdicts == rows.right)) if len(rows) else math.nan
