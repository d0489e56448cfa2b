"""Finds the highest rate that a server keeps up with."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final

_UP: Final = 1.5
_NEAR: Final = 1.1
_LEAST_PER_S: Final = 0.01


class Outcome(Enum):
    """What a step at a rate showed."""

    HOLDS = "holds"
    MISSES = "misses"
    VOID = "void"
    """The client could not offer the rate, so the step says nothing of the server."""
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class Knee:
    """What the search found.

    Attributes:
        rate_per_s: The highest rate that held; None where none did.
        client_limited: The client could not offer more, so the server's own knee is higher.
        at_most: The search ended at the highest rate that it may offer.
        stopped: The user interrupted the search.
    """

    rate_per_s: float | None
    client_limited: bool = False
    at_most: bool = False
    stopped: bool = False


def find_knee(measure: Callable[[float], Outcome], *, start_per_s: float, most_per_s: float = float("inf")) -> Knee:
    """Raises the rate by halves until it misses, then bisects (in the logarithm) until both ends are within 10 %.

    A rate that misses is tried once more, since a busy machine makes a good rate miss now and then; the second try
    stands. Where the first rate misses, rates go down instead.

    Args:
        measure: Puts a rate (calls per second) on the server for a step.
        start_per_s: The first rate.
        most_per_s: No rate is higher.
    """
    search = _Search(measure)
    rate = min(start_per_s, most_per_s)
    while search.last is not Outcome.STOPPED:
        if search.holds(rate):
            if rate >= most_per_s:
                return Knee(rate, at_most=True)
            if search.high is not None:
                break
            rate = min(rate * _UP, most_per_s)
        elif search.low is not None:
            break
        else:
            rate /= _UP
            if rate < _LEAST_PER_S:
                break
    while search.last is not Outcome.STOPPED and search.low and search.high and search.high / search.low > _NEAR:
        search.holds((search.low * search.high) ** 0.5)
    return Knee(search.low, search.high_is_void, stopped=search.last is Outcome.STOPPED)


class _Search:
    """What is known: `low` held, `high` did not."""

    def __init__(self, measure: Callable[[float], Outcome]) -> None:
        self._measure = measure
        self.low: float | None = None
        self.high: float | None = None
        self.high_is_void = False
        self.last = Outcome.HOLDS

    def holds(self, rate: float) -> bool:
        self.last = self._measure(rate)
        if self.last in {Outcome.MISSES, Outcome.VOID}:
            self.last = self._measure(rate)
        if self.last is Outcome.HOLDS:
            self.low = rate if self.low is None else max(self.low, rate)
        elif self.last is not Outcome.STOPPED:
            self.high, self.high_is_void = rate, self.last is Outcome.VOID
        return self.last is Outcome.HOLDS
