"""Steps of a run: what was offered, what came of it, and whether the server kept up."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from gradewire.load_testing.counts import UNAVAILABLE
from gradewire.load_testing.knee import Outcome

if TYPE_CHECKING:
    from gradewire.load_testing.counts import StepCounts
    from gradewire.load_testing.server_figures import ServerFigures

PERCENTILES: Final = (50.0, 90.0, 95.0, 99.0, 99.9)


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """What keeping up means.

    Attributes:
        p99_s: Most that the 99th percentile of scored calls may be, from when they were due.
        max_refused: Most calls that may be refused, as a share.
        max_failed: Most calls that may fail otherwise, as a share.
        min_in_time: Least share of calls that are scored before the step is over and `p99_s` has passed as well: below
            it work piles up.
        max_lag_s: Most that the 99th percentile of how late calls left may be: beyond it the client is the bottleneck.
    """

    p99_s: float
    max_refused: float = 0.001
    max_failed: float = 0.001
    min_in_time: float = 0.99
    max_lag_s: float

    @property
    def told(self) -> str:
        """In words."""
        return (
            f"p99 of scored calls at most {self.p99_s * 1e3:g} ms, at most {self.max_refused:.1%} refused and as many "
            f"failed, at least {self.min_in_time:.0%} scored in time"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A step that was measured.

    Attributes:
        rate_per_s: Calls per second that were asked for.
        duration_s: Over which calls were due.
        counts: Of its calls.
        objective: What it is held against.
        batch: Items of a call.
        before: The server before it; None where nobody asks.
        after: The server after its last call has ended.
        load: Runnable processes of this machine in the last minute, at its end.
        over_knee: Whether it is the step at twice the knee.
        stopped: Whether the user interrupted it.
    """

    rate_per_s: float
    duration_s: float
    counts: StepCounts
    objective: Objective
    batch: int
    before: ServerFigures | None = None
    after: ServerFigures | None = None
    load: float = math.nan
    over_knee: bool = False
    stopped: bool = False

    def share(self, calls: int) -> float:
        """Of all calls that were due; NaN where there were none."""
        return calls / self.counts.due if self.counts.due else math.nan

    @property
    def scored_per_s(self) -> float:
        """Calls that were scored in time, a second."""
        return self.counts.in_time / self.duration_s

    @property
    def lag_s(self) -> float:
        """99th percentile of how late calls left."""
        return self.counts.lag.percentile_s(99)

    @property
    def client_limited(self) -> bool:
        """Whether the client was the bottleneck, so that the step says nothing of the server."""
        return self.lag_s > self.objective.max_lag_s

    @property
    def is_lost(self) -> bool:
        """Whether the server could not be reached by any call."""
        return 0 < self.counts.due == self.counts.codes[UNAVAILABLE]

    @property
    def outcome(self) -> Outcome:
        """What it shows."""
        if self.stopped:
            return Outcome.STOPPED
        if self.is_lost:
            return Outcome.LOST
        if self.client_limited:
            return Outcome.VOID
        counts, objective = self.counts, self.objective
        holds = (
            counts.latency.percentile_s(99) <= objective.p99_s
            and self.share(counts.refused) <= objective.max_refused
            and self.share(counts.failed) <= objective.max_failed
            and self.share(counts.in_time) >= objective.min_in_time
        )
        return Outcome.HOLDS if holds else Outcome.MISSES

    @property
    def server_cpu_s_per_item(self) -> float:
        """CPU seconds of the server's process for an item that was scored; NaN where nobody asks it."""
        if self.before is None or self.after is None or not self.counts.items:
            return math.nan
        return (self.after.cpu_s - self.before.cpu_s) / self.counts.items

    @property
    def hit_rate(self) -> float:
        """Share of texts that the server did not compute; NaN where nobody asks it."""
        return math.nan if self.before is None or self.after is None else self.after.hit_rate_since(self.before)

    @property
    def repeated_share(self) -> float:
        """Share of items that had been sent before."""
        return self.counts.repeated / self.counts.sent_items if self.counts.sent_items else math.nan

    @property
    def words(self) -> float:
        """Mean words of an answer."""
        return self.counts.words / self.counts.sent_items if self.counts.sent_items else math.nan

    def document(self) -> dict[str, Any]:
        """For JSON; seconds where no unit is named."""
        counts, latency = self.counts, self.counts.latency
        return {
            "rate_per_s": self.rate_per_s,
            "duration_s": self.duration_s,
            "over_knee": self.over_knee,
            "outcome": self.outcome.value,
            "calls": counts.due,
            "batch": self.batch,
            "scored_calls": len(latency),
            "scored_in_time_per_s": self.scored_per_s,
            "in_time_share": self.share(counts.in_time),
            "refused_share": self.share(counts.refused),
            "refused_with_hint": counts.hinted,
            "failed_share": self.share(counts.failed),
            "codes": dict(counts.codes),
            "statuses": dict(counts.statuses),
            "latency_s": {f"p{place:g}": latency.percentile_s(place) for place in PERCENTILES} | {"max": latency.max_s},
            "latency_curve": latency.curve(),
            "refusal_p99_s": counts.refusal.percentile_s(99),
            "client_lag_s": {"p50": counts.lag.percentile_s(50), "p99": self.lag_s, "max": counts.lag.max_s},
            "client_cpu_s": counts.cpu_s,
            "answers_repeated_share": self.repeated_share,
            "words_mean": self.words,
            "server_cpu_s_per_item": self.server_cpu_s_per_item,
            "server_hit_rate": self.hit_rate,
            "server_before": self.before,
            "server_after": self.after,
            "load": self.load,
        }
