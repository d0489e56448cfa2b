"""A whole run: the search for the knee and a step at twice the knee, or a single step."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from gradewire.errors import InvalidRequest
from gradewire_cli.load.open_loop import poisson
from gradewire_cli.load.steps import Check, Objective, Outcome, ServerUsage, Step, overload_checks, read_usage

if TYPE_CHECKING:
    from collections.abc import Callable

    from gradewire_cli.load.processes import LoadProcesses

_UP: Final = 1.5
_NEAR: Final = 1.1
_LEAST_PER_S: Final = 0.01
_PROBE_S: Final = 3.0
# A closed loop with a few calls in flight finds about the capacity; the knee is below.
_START_SHARE: Final = 0.5
_STEP_S: Final = 10.0
_STEP_CALLS: Final = 500
_LONGEST_STEP_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Knee:
    """The result of the search.

    Attributes:
        rate_per_s: The highest rate that held; None if none did.
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


def find_knee(measure: Callable[[float], Outcome], *, start_per_s: float, most_per_s: float = math.inf) -> Knee:
    """Raise the rate by halves until it misses, then bisect (in the logarithm) until both ends are within 10 %.

    A rate that misses is tried once more, since a busy machine makes a good rate miss now and then; the second try
    counts. If the first rate misses, rates go down instead. A server that is lost in the second try ends the search.

    Args:
        measure: Puts a rate (calls per second) on the server for a step.
        start_per_s: The first rate.
        most_per_s: The highest rate.
    """
    low: float | None = None
    high: float | None = None
    high_is_void = False
    rate = min(start_per_s, most_per_s)
    while rate >= _LEAST_PER_S:
        outcome = measure(rate)
        if outcome in {Outcome.MISSES, Outcome.VOID, Outcome.LOST}:
            outcome = measure(rate)
        if outcome in {Outcome.LOST, Outcome.STOPPED}:
            return Knee(low, high_is_void, lost=outcome is Outcome.LOST, stopped=outcome is Outcome.STOPPED)
        if outcome is Outcome.HOLDS:
            low = rate
        else:
            high, high_is_void = rate, outcome is Outcome.VOID
        if low == most_per_s:
            return Knee(low, at_most=True)
        if high is None:
            rate = min(rate * _UP, most_per_s)
        elif low is None:
            rate /= _UP
        elif high / low > _NEAR:
            rate = (low * high) ** 0.5
        else:
            break
    return Knee(low, high_is_void)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadPlan:
    """The load that is offered.

    Attributes:
        step_s: Duration of a step; None: 10 seconds, and longer, up to a minute, until a step has 500 calls.
        seed: Seed of arrivals.
        batch: Items of a call.
        objective: The conditions of keeping up.
        start_per_s: First rate, calls per second; None: half of what a short closed loop gets done.
        most_per_s: Highest rate.
        metrics_url: The server's page of metrics; None: it is not read.
    """

    step_s: float | None
    seed: int
    batch: int
    objective: Objective
    start_per_s: float | None = None
    most_per_s: float = math.inf
    metrics_url: str | None = None


@dataclass(slots=True)
class LoadResult:
    """The results, as far as the run got.

    Attributes:
        steps: Steps in their order.
        knee: None for a single step.
        checks: Promises at twice the knee.
        stopped: The user interrupted it.
        error: The reason why it ended early otherwise; "" if it did not.
        unread: The last reason why the server's page of metrics could not be read during the run; "" if it could.
        sent_items: Items of all calls, those of the probe among them.
    """

    steps: list[Step] = field(default_factory=list)
    knee: Knee | None = None
    checks: list[Check] = field(default_factory=list)
    stopped: bool = False
    error: str = ""
    unread: str = ""
    sent_items: int = 0

    @property
    def is_partial(self) -> bool:
        """Whether it ended early."""
        return self.stopped or bool(self.error)

    @property
    def knee_step(self) -> Step | None:
        """The last step at the knee that held."""
        rate = None if self.knee is None else self.knee.rate_per_s
        steps = (step for step in reversed(self.steps) if step.rate_per_s == rate and not step.over_knee)
        return next((step for step in steps if step.outcome is Outcome.HOLDS), None)


class LoadRun:
    """A run with client processes that are connected.

    Args:
        processes: The client.
        plan: The load that is offered.
        on_step: Called after each step.
        result: Takes the results as they come: whatever ends the run, they are there.
    """

    def __init__(
        self, processes: LoadProcesses, plan: LoadPlan, on_step: Callable[[Step], None], result: LoadResult
    ) -> None:
        self._processes = processes
        self._plan = plan
        self._on_step = on_step
        self._result = result

    def search(self) -> None:
        """Find the knee, and check the server's promises at twice the knee."""
        start_per_s = self._plan.start_per_s or self._probe()
        result = self._result
        if result.stopped:
            return
        result.knee = find_knee(
            lambda rate: self.step(rate).outcome, start_per_s=start_per_s, most_per_s=self._plan.most_per_s
        )
        knee = result.knee_step
        # Twice the client's own limit is not twice of what the server keeps up with.
        ended = result.knee.stopped or result.knee.lost or result.knee.client_limited
        if knee is not None and not ended:
            over = self.step(2 * knee.rate_per_s, over_knee=True)
            result.checks = list(overload_checks(knee, over))

    def step(self, rate_per_s: float, *, over_knee: bool = False) -> Step:
        """Run one step at a rate, in calls per second."""
        plan, result, objective = self._plan, self._result, self._plan.objective
        duration_s = plan.step_s or min(max(_STEP_S, _STEP_CALLS / rate_per_s), _LONGEST_STEP_S)
        if over_knee:
            # Twice the latency is promised there, so the client may be late by twice as much.
            objective = replace(objective, p99_s=2 * objective.p99_s, max_lag_s=2 * objective.max_lag_s)
        before = self._usage()
        offsets = poisson(rate_per_s, duration_s, plan.seed + len(result.steps))
        run = self._processes.open_step(offsets, duration_s + objective.p99_s)
        step = Step(
            rate_per_s=rate_per_s,
            duration_s=duration_s,
            counts=run.counts,
            objective=objective,
            batch=plan.batch,
            before=before,
            after=self._usage(),
            load=os.getloadavg()[0],
            over_knee=over_knee,
            stopped=run.stopped,
        )
        result.steps.append(step)
        result.sent_items += run.counts.sent_items
        result.stopped |= run.stopped
        self._on_step(step)
        return step

    def _probe(self) -> float:
        """Return the first rate: a share of what a closed loop gets done."""
        run = self._processes.probe(_PROBE_S)
        self._result.stopped |= run.stopped
        self._result.sent_items += run.counts.sent_items
        return _START_SHARE * max(1, len(run.counts.latency_s)) / _PROBE_S

    def _usage(self) -> ServerUsage | None:
        """Return the server's usage; None without a page, or if the server is gone or too busy to send it."""
        if self._plan.metrics_url is None:
            return None
        try:
            return read_usage(self._plan.metrics_url)
        except InvalidRequest as error:
            # The command has read it before the run: the steps show that the server is gone.
            self._result.unread = str(error)
            return None
