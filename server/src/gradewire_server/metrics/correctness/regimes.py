"""What log-odds mean for items of one kind, near to the fitted rows or far from them: a probability and a band.

Sources: calibration map as in Zadrozny and Elkan 2002; band: class-conditional (Mondrian) split conformal prediction,
Vovk, Gammerman and Shafer 2005, chapter 4.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gradewire_server.metrics.correctness.stored_form import ConformalForm, MapForm, RanksForm

VERDICT: Final = 0.5
"""Probability from which an answer counts as right."""
_MISTAKEN_FROM: Final = 0.5
_MISTAKEN_SLOPE: Final = 1.25
"""At confidence c the band holds the share (c - 1/2) 5/4 of wrong verdicts: half of them at 0.9."""
_ROUNDING: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Band:
    """Probabilities, from `lower` to `upper` and both included, at which a verdict is not trusted."""

    lower: float
    upper: float

    def holds(self, probability: float) -> bool:
        """Whether a probability lies inside."""
        return self.lower <= probability <= self.upper

    def towards(self, other: "Band", share: float) -> "Band":
        """This band, wider by that share of what the other one is wider at either end."""
        return Band(
            lower=self.lower - share * max(0.0, self.lower - other.lower),
            upper=self.upper + share * max(0.0, other.upper - self.upper),
        )


EVERYTHING: Final = Band(0.0, 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class _Ranks:
    """Order statistics of some rows, as stored in `RanksForm`."""

    count: int
    ranks: NDArray[np.intp]
    values: NDArray[np.float64]

    def edge(self, beyond: float) -> float | None:
        """The value that at most the share `beyond` of the rows lies beyond; None where they are too few to say.

        Of n held-out rows and a new one, exchangeable with them, the new one is beyond the k-th value with a
        probability of at most k / (n + 1).
        """
        most = int(beyond * (self.count + 1) + _ROUNDING)
        row = int(np.searchsorted(self.ranks, most, side="right")) - 1
        return float(self.values[row]) if row >= 0 else None


@dataclass(frozen=True, slots=True, eq=False)
class Regime:
    """What log-odds mean for items of one kind.

    Attributes:
        log_odds: float64[points], strictly ascending.
        probability: float64[points], never falling.
    """

    log_odds: NDArray[np.float64]
    probability: NDArray[np.float64]
    _right: _Ranks
    _wrong: _Ranks
    _mistaken: _Ranks | None

    @classmethod
    def of(cls, points: MapForm, conformal: ConformalForm) -> "Regime":
        """What is stored of it."""
        mistaken = conformal.mistaken
        return cls(
            np.array(points.log_odds),
            np.array(points.probability),
            _ranks(conformal.right),
            _ranks(conformal.wrong),
            None if mistaken is None else _ranks(mistaken),
        )

    def p_right(self, log_odds: float) -> float:
        """P(right), 0 to 1."""
        return float(np.interp(log_odds, self.log_odds, self.probability))

    @lru_cache(maxsize=64)  # noqa: B019 - a process has a handful of fits, which it keeps
    def band(self, confidence: float) -> Band:
        """Where the verdict is not trusted at `confidence`, above 0 and below 1.

        A verdict is trusted where the other one is ruled out and it is not: "wrong" below what nearly all right answers
        reach, "right" above what nearly all wrong ones stay under. The band holds its share of the wrong verdicts as
        well, and always the probability of the verdict's edge, 1/2. Where the rows are too few for such a confidence,
        the band is everything on that side.
        """
        lower, upper = self._right.edge(1 - confidence), self._wrong.edge(1 - confidence)
        held, certain = _MISTAKEN_SLOPE * (confidence - _MISTAKEN_FROM), VERDICT
        if self._mistaken is not None and held > 0:
            edge = self._mistaken.edge(1 - held)
            certain = 1.0 if edge is None else edge
        return Band(
            lower=min(0.0 if lower is None else lower, 1 - certain, VERDICT),
            upper=max(1.0 if upper is None else upper, certain, VERDICT),
        )


def _ranks(form: RanksForm) -> _Ranks:
    return _Ranks(form.count, np.array(form.ranks, dtype=np.intp), np.array(form.values))
