"""What was counted of the calls of one step."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from gradewire.load_testing.latencies import Latencies

OK = "OK"
REFUSED = "RESOURCE_EXHAUSTED"
UNAVAILABLE = "UNAVAILABLE"
HANGING = "HANGING"
"""A call that did not end although its deadline was long past."""
STOPPED = "STOPPED"
"""A call that was on its way when the run was interrupted."""


class Ended(NamedTuple):
    """How a call ended.

    Attributes:
        code: Name of its gRPC status, or HANGING.
        hinted: Whether it says when to come back.
        statuses: Of its results, how many of each; None where there is no reply.
    """

    code: str
    hinted: bool = False
    statuses: Counter[str] | None = None

    @property
    def is_scored(self) -> bool:
        """Whether every result is OK."""
        return self.code == OK and self.statuses is not None and set(self.statuses) <= {OK}


class CallTimes(NamedTuple):
    """When a call was due, left and ended, seconds on one clock."""

    due_s: float
    left_s: float
    ended_s: float


@dataclass(slots=True)
class StepCounts:
    """How the calls of one step ended.

    Attributes:
        due: Calls that were due.
        codes: Ends by gRPC code; HANGING and STOPPED are ours.
        statuses: Results by status.
        items: Items of calls that ended OK.
        sent_items: Items of all calls.
        in_time: Calls whose results were all OK before the step was over and the SLO's time had passed as well.
        hinted: Refused calls that said when to come back.
        repeated: Items that had been sent before.
        again: Of these, items that were to be new, and a file has no further rows.
        words: Words of all answers that were sent.
        latency: Of calls whose results were all OK, from when they were due.
        refusal: Of refused calls, from when they left.
        lag: Of all calls: how late they left.
        cpu_s: CPU seconds of the client's processes.
    """

    due: int = 0
    codes: Counter[str] = field(default_factory=Counter)
    statuses: Counter[str] = field(default_factory=Counter)
    items: int = 0
    sent_items: int = 0
    in_time: int = 0
    hinted: int = 0
    repeated: int = 0
    again: int = 0
    words: int = 0
    latency: Latencies = field(default_factory=Latencies)
    refusal: Latencies = field(default_factory=Latencies)
    lag: Latencies = field(default_factory=Latencies)
    cpu_s: float = 0.0

    @property
    def refused(self) -> int:
        """Calls that the server had no room for."""
        return self.codes[REFUSED]

    @property
    def failed(self) -> int:
        """Calls that ended neither scored nor refused, those whose results are not all OK among them."""
        return sum(self.codes.values()) - len(self.latency) - self.refused - self.codes[STOPPED]

    def add(self, other: StepCounts) -> None:
        """Adds what another process counted."""
        for name in ("due", "items", "sent_items", "in_time", "hinted", "repeated", "again", "words", "cpu_s"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.codes += other.codes
        self.statuses += other.statuses
        for mine, theirs in ((self.latency, other.latency), (self.refusal, other.refusal), (self.lag, other.lag)):
            mine.add(theirs)

    def count(self, ended: Ended, times: CallTimes, items: int, in_time_until_s: float) -> None:
        """Counts a call of so many items.

        Args:
            ended: How it ended.
            times: When.
            items: How many it had.
            in_time_until_s: When it had to be scored in order to count as in time, on the clock of `times`.
        """
        self.codes[ended.code] += 1
        if ended.code == REFUSED:
            self.refusal.record(times.ended_s - times.left_s)
            self.hinted += ended.hinted
        if ended.statuses is not None:
            self.statuses += ended.statuses
            self.items += items
        if ended.is_scored:
            self.latency.record(times.ended_s - times.due_s)
            self.in_time += times.ended_s <= in_time_until_s
