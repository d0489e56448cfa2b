"""Counts of the calls of one step, and their latencies."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

OK: Final = "OK"
REFUSED: Final = "RESOURCE_EXHAUSTED"
UNAVAILABLE: Final = "UNAVAILABLE"
HANGING: Final = "HANGING"
"""A call without a result although its deadline was long past."""
STOPPED: Final = "STOPPED"
"""A call that was in flight when the run was interrupted."""


def percentile_s(latencies_s: array[float], percentile: float) -> float:
    """Return the least latency that so many of 100 do not exceed, seconds; NaN without any."""
    if not latencies_s:
        return math.nan
    # By hand, since numpy's own takes the next rank where the product is not exact, as of 99.9 % of 1000.
    rank = max(1, math.ceil(percentile / 100 * len(latencies_s) - 1e-9))
    return float(np.sort(latencies_s)[rank - 1])


def _no_latencies() -> array[float]:
    return array("d")


class CallResult(NamedTuple):
    """The result of a call.

    Attributes:
        code: Name of its gRPC status, or HANGING.
        hinted: Whether it says when to try again.
        statuses: Number of its results by status; None without a reply.
    """

    code: str
    hinted: bool = False
    statuses: Counter[str] | None = None

    @property
    def is_scored(self) -> bool:
        """Whether every result is OK."""
        return self.code == OK and self.statuses is not None and set(self.statuses) <= {OK}


@dataclass(slots=True)
class StepCounts:
    """Counts of the calls of one step.

    Attributes:
        due: Calls that were due.
        codes: Calls by gRPC code; HANGING and STOPPED are ours.
        statuses: Results by status.
        items: Items of calls that returned OK.
        sent_items: Items of all calls.
        in_time: Calls whose results were all OK before the step was over and the SLO's time had passed as well.
        hinted: Refused calls that said when to try again.
        repeated: Items that had been sent before.
        latency_s: Latencies of calls whose results were all OK, from when they were due.
        lag_s: Delays of all calls between when they were due and when they left.
    """

    due: int = 0
    codes: Counter[str] = field(default_factory=Counter)
    statuses: Counter[str] = field(default_factory=Counter)
    items: int = 0
    sent_items: int = 0
    in_time: int = 0
    hinted: int = 0
    repeated: int = 0
    latency_s: array[float] = field(default_factory=_no_latencies)
    lag_s: array[float] = field(default_factory=_no_latencies)

    @property
    def refused(self) -> int:
        """Calls that the server had no room for."""
        return self.codes[REFUSED]

    @property
    def failed(self) -> int:
        """Calls neither scored nor refused, those whose results are not all OK among them."""
        return sum(self.codes.values()) - len(self.latency_s) - self.refused - self.codes[STOPPED]

    def add(self, other: StepCounts) -> None:
        """Add the counts of another process."""
        for name in ("due", "items", "sent_items", "in_time", "hinted", "repeated"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.codes += other.codes
        self.statuses += other.statuses
        self.latency_s.extend(other.latency_s)
        self.lag_s.extend(other.lag_s)

    def count(self, result: CallResult, *, items: int, latency_s: float, in_time: bool) -> None:
        """Count a call of `items` items that returned `latency_s` after it was due."""
        self.codes[result.code] += 1
        self.hinted += result.hinted and result.code == REFUSED
        if result.statuses is not None:
            self.statuses += result.statuses
            self.items += items
        if result.is_scored:
            self.latency_s.append(latency_s)
            self.in_time += in_time
