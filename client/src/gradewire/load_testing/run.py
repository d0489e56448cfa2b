"""A whole run: what is repeated is sent once, then steps to the knee and one at twice the knee, or a single step."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Literal, Protocol

from gradewire.errors import InvalidRequest
from gradewire.load_testing.arrivals import constant, poisson
from gradewire.load_testing.checks import Check, overload_checks
from gradewire.load_testing.knee import Knee, Outcome, find_knee
from gradewire.load_testing.server_figures import ServerFigures, read_server_figures
from gradewire.load_testing.steps import Objective, Step
from gradewire.load_testing.workers.worker import Fill, Probe

if TYPE_CHECKING:
    from gradewire.load_testing.arrivals import Offsets
    from gradewire.load_testing.workers.processes import LoadProcesses

ArrivalKind = Literal["poisson", "constant"]

_PROBE_S: Final = 3.0
_PROBE_IN_FLIGHT: Final = 8
# A closed loop with a few calls in flight finds about the capacity; the knee is below.
_START_SHARE: Final = 0.5
_LONGEST_STEP_S: Final = 60.0


class Told(Protocol):
    """Learns how a run goes."""

    def passed(self, what: str, passed_s: float, of_s: float) -> None:
        """So many seconds of `of_s` have passed."""
        ...

    def measured(self, step: Step) -> None:
        """A step has ended."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadPlan:
    """What is offered.

    Attributes:
        arrivals: How calls of a step come.
        step_s: Least duration of a step.
        min_calls: A step takes longer, up to a minute, until it has as many.
        seed: Of arrivals.
        batch: Items of a call.
        objective: What keeping up means.
        start_per_s: First rate, calls per second; None: half of what a short closed loop gets done.
        most_per_s: Highest rate.
        metrics_url: The server's page of metrics; None: it is not asked.
    """

    arrivals: ArrivalKind
    step_s: float
    min_calls: int
    seed: int
    batch: int
    objective: Objective
    start_per_s: float | None = None
    most_per_s: float = float("inf")
    metrics_url: str | None = None


@dataclass(slots=True)
class LoadResult:
    """What was found, as far as the run got.

    Attributes:
        steps: In their order.
        knee: None for a single step.
        checks: At twice the knee.
        stopped: The user interrupted it.
        error: What else ended it early; "" where nothing did.
        unread: Why the server's page of metrics could not be read, for each time but the first, which ends a run.
        missing_rows: Items that were to be new, and were sent again because a file has no further rows.
    """

    steps: list[Step] = field(default_factory=list)
    knee: Knee | None = None
    checks: list[Check] = field(default_factory=list)
    stopped: bool = False
    error: str = ""
    unread: list[str] = field(default_factory=list)
    missing_rows: int = 0

    @property
    def is_partial(self) -> bool:
        """Whether it ended before its end."""
        return self.stopped or bool(self.error)

    @property
    def knee_step(self) -> Step | None:
        """The last step at the knee that held."""
        rate = None if self.knee is None else self.knee.rate_per_s
        steps = (step for step in reversed(self.steps) if step.rate_per_s == rate and not step.over_knee)
        return next((step for step in steps if step.outcome is Outcome.HOLDS), None)


class LoadRun:
    """Measures, with client processes that are connected.

    Args:
        processes: The client.
        plan: What is offered.
        told: Learns how it goes.
        result: Takes in what is found, as it is found: whatever ends the run, this is there.
    """

    def __init__(self, processes: LoadProcesses, plan: LoadPlan, told: Told, result: LoadResult) -> None:
        self._processes = processes
        self._plan = plan
        self._told = told
        self._page_was_read = False
        self.result = result

    def fill(self) -> None:
        """Sends what will be repeated, once.

        Raises:
            InvalidRequest: The server's page of metrics is asked for and cannot be read: nothing was sent.
        """
        self._server()
        count = self._processes.count
        run = self._processes.run(
            [Fill(part, count) for part in range(count)], lambda passed_s: self._told.passed("fill", passed_s, 0.0)
        )
        self.result.stopped |= run.stopped

    def to_the_knee(self) -> None:
        """Finds the knee, and holds the server to its promises at twice the knee."""
        start_per_s = self._plan.start_per_s or self._probe()
        result = self.result
        if result.stopped:
            return
        result.knee = find_knee(
            lambda rate: self.step(rate).outcome, start_per_s=start_per_s, most_per_s=self._plan.most_per_s
        )
        result.stopped |= result.knee.stopped
        knee = result.knee_step
        # Twice of what the client could offer is not twice of what the server keeps up with.
        ended = result.stopped or result.knee.lost or result.knee.client_limited
        if knee is not None and not ended:
            over = self.step(2 * knee.rate_per_s, over_knee=True)
            result.checks = list(overload_checks(knee, over))

    def step(self, rate_per_s: float, *, over_knee: bool = False) -> Step:
        """One step at a rate, in calls per second."""
        plan = self._plan
        duration_s = min(max(plan.step_s, plan.min_calls / rate_per_s), max(_LONGEST_STEP_S, plan.step_s))
        if plan.arrivals == "constant":
            offsets = constant(rate_per_s, duration_s)
        else:
            offsets = poisson(rate_per_s, duration_s, plan.seed + len(self.result.steps))
        return self.offer(offsets, rate_per_s, duration_s, over_knee=over_knee)

    def offer(self, offsets: Offsets, rate_per_s: float, duration_s: float, *, over_knee: bool = False) -> Step:
        """One step of given arrivals; `rate_per_s` and `duration_s` say what they are."""
        objective = self._plan.objective
        if over_knee:
            # Twice the latency is promised there, so the client may be late by twice as much.
            objective = replace(objective, p99_s=2 * objective.p99_s, max_lag_s=2 * objective.max_lag_s)
        before = self._server()
        run = self._processes.open_step(
            offsets,
            duration_s + objective.p99_s,
            lambda passed_s: self._told.passed(f"{rate_per_s:.4g} calls/s", passed_s, duration_s),
        )
        step = Step(
            rate_per_s=rate_per_s,
            duration_s=duration_s,
            counts=run.counts,
            objective=objective,
            batch=self._plan.batch,
            before=before,
            after=self._server(),
            load=os.getloadavg()[0],
            over_knee=over_knee,
            stopped=run.stopped,
        )
        self.result.steps.append(step)
        self.result.missing_rows += run.counts.again
        self.result.stopped |= run.stopped
        self._told.measured(step)
        return step

    def _probe(self) -> float:
        """The first rate, from what a closed loop gets done."""
        orders = [Probe(_PROBE_S, _PROBE_IN_FLIGHT)] * self._processes.count
        run = self._processes.run(orders, lambda passed_s: self._told.passed("probe", passed_s, _PROBE_S))
        self.result.stopped |= run.stopped
        self.result.missing_rows += run.counts.again
        scored = len(run.counts.latency)
        return _START_SHARE * max(1, scored) / _PROBE_S

    def _server(self) -> ServerFigures | None:
        """What the server says of itself; None where nobody asks, and where it could be read before and cannot now."""
        if self._plan.metrics_url is None:
            return None
        try:
            figures = read_server_figures(self._plan.metrics_url)
        except InvalidRequest as error:
            # The address was right: it is the server that has gone, or has no time for it, and steps tell that.
            if not self._page_was_read:
                raise
            self.result.unread.append(str(error))
            return None
        self._page_was_read = True
        return figures
