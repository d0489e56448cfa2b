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
    LOST = "lost"
    """No call reached the server, so the step says nothing of how much it keeps up with."""
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class Knee:
    """What the search found.

    Attributes:
        rate_per_s: The highest rate that held; None where none did.
        client_limited: The client could not offer more, so the server's own knee is higher.
        at_most: The search ended at the highest rate that it may offer.
        lost: The server could not be reached any more, so that the search did not end.
        stopped: The user interrupted the search.
    """

    rate_per_s: float | None
    client_limited: bool = False
    at_most: bool = False
    lost: bool = False
    stopped: bool = False


def find_knee(measure: Callable[[float], Outcome], *, start_per_s: float, most_per_s: float = float("inf")) -> Knee:
    """Raises the rate by halves until it misses, then bisects (in the logarithm) until both ends are within 10 %.

    A rate that misses is tried once more, since a busy machine makes a good rate miss now and then; the second try
    stands. Where the first rate misses, rates go down instead. A server that is lost in the second try ends the search.

    Args:
        measure: Puts a rate (calls per second) on the server for a step.
        start_per_s: The first rate.
        most_per_s: No rate is higher.
    """
    search = _Search(measure)
    rate = min(start_per_s, most_per_s)
    while search.goes_on:
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
    while search.goes_on and search.low and search.high and search.high / search.low > _NEAR:
        search.holds((search.low * search.high) ** 0.5)
    last = search.last
    return Knee(search.low, search.high_is_void, lost=last is Outcome.LOST, stopped=last is Outcome.STOPPED)


class _Search:
    """What is known: `low` held, `high` did not."""

    def __init__(self, measure: Callable[[float], Outcome]) -> None:
        self._measure = measure
        self.low: float | None = None
        self.high: float | None = None
        self.high_is_void = False
        self.last = Outcome.HOLDS

    @property
    def goes_on(self) -> bool:
        return self.last not in {Outcome.LOST, Outcome.STOPPED}

    def holds(self, rate: float) -> bool:
        self.last = self._measure(rate)
        if self.last in {Outcome.MISSES, Outcome.VOID, Outcome.LOST}:
            self.last = self._measure(rate)
        if self.last is Outcome.HOLDS:
            self.low = rate if self.low is None else max(self.low, rate)
        elif self.goes_on:
            self.high, self.high_is_void = rate, self.last is Outcome.VOID
        return self.last is Outcome.HOLDS
