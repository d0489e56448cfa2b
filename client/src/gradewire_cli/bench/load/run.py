"""Search for the knee, and check the server's promises at twice the knee."""

from __future__ import annotations

import http
import http.client
import math
import os
import urllib.error
import urllib.request
from collections import defaultdict
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from prometheus_client.parser import text_string_to_metric_families

from gradewire.errors import InvalidRequest
from gradewire_cli.bench.load.calls import HANGING, OK, REFUSED, UNAVAILABLE, percentile_s, poisson
from gradewire_proto.wire_rules import AUTHORIZATION_KEY, bearer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gradewire_cli.bench.load.calls import Objective, StepCounts
    from gradewire_cli.bench.load.processes import LoadOptions, LoadProcesses


_TIMEOUT_S: Final = 10.0
_NEEDS_TOKEN: Final = frozenset({http.HTTPStatus.UNAUTHORIZED, http.HTTPStatus.FORBIDDEN})
# errors from the parser, which does not validate its input
_UNREADABLE: Final = (OSError, http.client.HTTPException, ValueError, LookupError, ArithmeticError)


@dataclass(frozen=True, slots=True)
class ServerUsage:
    """The resources that all processes of the server use. A value is 0 if the metrics page lacks it."""

    cpu_s: float
    resident_bytes: float


def read_usage(url: str, token: str | None = None) -> ServerUsage:
    """Read the server's metrics page at `url`, an http:// or https:// address, with a bearer token if there is one.

    Raises:
        InvalidRequest: The page is unreadable or not from gradewire.
    """
    sums: defaultdict[str, float] = defaultdict(float)
    request = urllib.request.Request(url)  # noqa: S310 - the user's address, already checked
    if token:
        # A redirect to another address must not get the token.
        request.add_unredirected_header(AUTHORIZATION_KEY, bearer(token))
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as reply:  # noqa: S310 - as above
            page = reply.read().decode()
        for family in text_string_to_metric_families(page):
            for sample in family.samples:
                sums[sample.name] += sample.value
        if "gradewire_serving" not in sums:
            raise ValueError("the page lacks gradewire_serving, so it is not from a gradewire server")
    except _UNREADABLE as error:
        # The parser's message is empty if the page ends within a line.
        reason = str(error) or "the page is cut off"
        refused = isinstance(error, urllib.error.HTTPError) and error.code in _NEEDS_TOKEN
        way_out = "Use a --token with the scope admin" if refused else "Use the server's http://HOST:PORT/metrics"
        raise InvalidRequest(f"--metrics-url {url}: {reason}. {way_out}") from error
    return ServerUsage(sums["process_cpu_seconds_total"], sums["process_resident_memory_bytes"])


PERCENTILES: Final = (50.0, 90.0, 95.0, 99.0, 99.9)
_MOST_P99: Final = 2.0
_MOST_GROWTH: Final = 0.05


class Outcome(Enum):
    """The outcome of a step."""

    HOLDS = "holds"
    MISSES = "misses"
    VOID = "void"
    """The client could not send calls at the step's rate."""
    LOST = "lost"
    """No call reached the server."""
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A measured step.

    Attributes:
        duration_s: Duration in seconds, without the wait for the last replies.
        load: This machine's load average in the last minute of the step.
    """

    rate_per_s: float
    duration_s: float
    counts: StepCounts
    objective: Objective
    batch: int
    before: ServerUsage | None = None
    after: ServerUsage | None = None
    load: float = math.nan
    over_knee: bool = False

    def share(self, calls: int) -> float:
        """Return `calls` as a share of all due calls, or NaN without due calls."""
        return calls / self.counts.due if self.counts.due else math.nan

    def latency_s(self, percentile: float) -> float:
        """Return a percentile of scored calls' latencies in seconds, or NaN without scored calls."""
        return percentile_s(self.counts.latency_s, percentile)

    @property
    def lag_s(self) -> float:
        """99th percentile of the delays between due time and sending, in seconds."""
        return percentile_s(self.counts.lag_s, 99)

    @property
    def client_limited(self) -> bool:
        """True if the client was the bottleneck."""
        return self.lag_s > self.objective.max_lag_s

    @property
    def is_lost(self) -> bool:
        """True if no call reached the server."""
        return 0 < self.counts.due == self.counts.codes[UNAVAILABLE]

    @property
    def outcome(self) -> Outcome:
        """The step's outcome according to the objective."""
        if self.counts.stopped:
            return Outcome.STOPPED
        if self.is_lost:
            return Outcome.LOST
        if self.client_limited:
            return Outcome.VOID
        counts, objective = self.counts, self.objective
        holds = (
            self.latency_s(99) <= objective.p99_s
            and self.share(counts.refused) <= objective.max_refused
            and self.share(counts.failed) <= objective.max_failed
            and self.share(counts.in_time) >= objective.min_in_time
        )
        return Outcome.HOLDS if holds else Outcome.MISSES

    @property
    def server_cpu_s_per_item(self) -> float:
        """The server's CPU seconds per scored item, or NaN if unknown."""
        if self.before is None or self.after is None or not self.counts.items:
            return math.nan
        return (self.after.cpu_s - self.before.cpu_s) / self.counts.items

    @property
    def repeated_share(self) -> float:
        """Share of sent items that had been sent before."""
        return self.counts.repeated / self.counts.sent_items if self.counts.sent_items else math.nan

    def document(self) -> dict[str, Any]:
        """Return the values for JSON. Times are in seconds."""
        counts, lag = self.counts, self.counts.lag_s
        return {
            "rate_per_s": self.rate_per_s,
            "duration_s": self.duration_s,
            "over_knee": self.over_knee,
            "outcome": self.outcome.value,
            "calls": counts.due,
            "batch": self.batch,
            "scored_calls": len(counts.latency_s),
            "scored_in_time_per_s": counts.in_time / self.duration_s,
            "in_time_share": self.share(counts.in_time),
            "refused_share": self.share(counts.refused),
            "refused_with_hint": counts.hinted,
            "failed_share": self.share(counts.failed),
            "codes": dict(counts.codes),
            "statuses": dict(counts.statuses),
            "latency_s": {f"p{each:g}": self.latency_s(each) for each in PERCENTILES} | {"max": self.latency_s(100)},
            "client_lag_s": {"p50": percentile_s(lag, 50), "p99": self.lag_s, "max": percentile_s(lag, 100)},
            "answers_repeated_share": self.repeated_share,
            "server_cpu_s_per_item": self.server_cpu_s_per_item,
            "server_before": self.before,
            "server_after": self.after,
            "load": self.load,
        }


@dataclass(frozen=True, slots=True)
class Check:
    """A check of one of the server's promises at twice the knee. `holds` is None if the check was impossible."""

    name: str
    measured: str
    promised: str
    holds: bool | None

    def __str__(self) -> str:
        verdict = {True: "pass", False: "FAIL", None: "not measured"}[self.holds]
        return f"{verdict}: {self.name}: {self.measured} (promised: {self.promised})"


def overload_checks(knee: Step, over: Step) -> Iterator[Check]:
    """Check the server's promises at twice the knee."""
    counts = over.counts
    if over.client_limited:
        lag = f"p99 of its lag is {over.lag_s * 1e3:.0f} ms"
        yield Check("the client offers twice the knee", lag, f"<= {over.objective.max_lag_s * 1e3:.0f} ms", None)
        return
    at_knee_s, p99_s = knee.latency_s(99), over.latency_s(99)
    ratio = f"{p99_s * 1e3:.0f} ms, {p99_s / at_knee_s:.2f} x the knee's"
    yield Check("p99 of admitted calls", ratio, f"<= {_MOST_P99:g} x", p99_s <= _MOST_P99 * at_knee_s)
    others = {code: calls for code, calls in counts.codes.items() if code not in {OK, REFUSED}}
    failed = f"{counts.failed} of {counts.due}" + (f" {others}" if others else "")
    yield Check("calls that are neither scored nor refused", failed, "0", counts.failed == 0)
    unhinted = counts.refused - counts.hinted
    without = f"{REFUSED} without grpc-retry-pushback-ms"
    yield Check(without, f"{unhinted} of {counts.refused}", "0", unhinted == 0)
    missing = counts.due - counts.codes.total() + counts.codes[HANGING]
    yield Check("calls without a result", f"{missing} of {counts.due}", "0", missing == 0)
    yield _memory_check(over)


def _memory_check(over: Step) -> Check:
    name, promised = "the server's memory", f"grows by <= {_MOST_GROWTH:.0%}"
    if over.before is None or over.after is None:
        return Check(name, "no --metrics-url, or an unreadable page", promised, None)
    before, after = over.before.resident_bytes, over.after.resident_bytes
    if not before:
        return Check(name, "not on the server's metrics page", promised, None)
    growth = after / before - 1
    measured = f"{before / 2**20:.0f} -> {after / 2**20:.0f} MiB ({growth:+.1%})"
    return Check(name, measured, promised, growth <= _MOST_GROWTH)


_UP: Final = 1.5
_NEAR: Final = 1.1
_LEAST_PER_S: Final = 0.01
_PROBE_S: Final = 3.0
# The knee is below the closed loop's rate, which approximates the server's capacity.
_START_SHARE: Final = 0.5
_STEP_S: Final = 10.0
_STEP_CALLS: Final = 500
_LONGEST_STEP_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Knee:
    """The result of the search for the highest rate that the server keeps up with.

    Attributes:
        rate_per_s: The highest tested rate that the server kept up with, or None if there is no such rate.
        client_limited: True if the client could not send calls at a higher rate.
        at_most: True if the search ended at the maximum rate.
        lost: True if the server became unavailable.
    """

    rate_per_s: float | None
    client_limited: bool = False
    at_most: bool = False
    lost: bool = False
    stopped: bool = False

    @property
    def is_known(self) -> bool:
        """True if only the server limits the rate."""
        return self.rate_per_s is not None and not (self.stopped or self.lost or self.client_limited)


def find_knee(measure: Callable[[float], Outcome], *, start_per_s: float, most_per_s: float = math.inf) -> Knee:
    """Raise the rate by 50 % until the server misses the objective, then bisect the range to a width of 10 %.

    If the first rate misses, lower the rate. If any rate misses, try it once more, because a good rate sometimes misses
    on a busy machine. The second try counts.
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


@dataclass(slots=True)
class LoadResult:
    """The results of a run so far.

    Attributes:
        knee: The result of the search, or None for a single step.
        error: Error that ended the run early, or "".
        unread: Last reason why the metrics page was unreadable during the run, or "".
        sent_items: Number of items in all calls, including the probe's calls.
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
        """True if the run ended early."""
        return self.stopped or bool(self.error)

    @property
    def has_failed(self) -> bool:
        """True if the run has no result, the server broke a promise, or it did not keep up with a single rate."""
        if self.knee is None:
            return any(step.outcome in {Outcome.MISSES, Outcome.VOID, Outcome.LOST} for step in self.steps)
        late = any(step.over_knee and step.client_limited for step in self.steps)
        return not self.knee.is_known or late or any(check.holds is False for check in self.checks)

    @property
    def knee_step(self) -> Step | None:
        """The last step at the knee's rate in which the server kept up, or None if there is no such step."""
        rate = None if self.knee is None else self.knee.rate_per_s
        steps = (step for step in reversed(self.steps) if step.rate_per_s == rate and not step.over_knee)
        return next((step for step in steps if step.outcome is Outcome.HOLDS), None)


@dataclass(frozen=True, slots=True)
class LoadRun:
    """A run that adds its measurements to `result`."""

    processes: LoadProcesses
    options: LoadOptions
    on_step: Callable[[Step], None]
    result: LoadResult

    def search(self) -> None:
        """Find the knee, and check the server's promises at twice the knee."""
        start_per_s = self.options.start_per_s or self._probe()
        result = self.result
        if result.stopped:
            return
        result.knee = find_knee(
            lambda rate: self.step(rate).outcome, start_per_s=start_per_s, most_per_s=self.options.most_per_s
        )
        knee = result.knee_step
        # A slow client could not send at twice the knee.
        if knee is not None and result.knee.is_known:
            over = self.step(2 * knee.rate_per_s, over_knee=True)
            result.checks = list(overload_checks(knee, over))

    def step(self, rate_per_s: float, *, over_knee: bool = False) -> Step:
        """Run one step at a rate in calls per second."""
        options, result, objective = self.options, self.result, self.options.objective
        duration_s = options.step_s or min(max(_STEP_S, _STEP_CALLS / rate_per_s), _LONGEST_STEP_S)
        if over_knee:
            # Under overload, latency and the client's lag may double.
            objective = replace(objective, p99_s=2 * objective.p99_s, max_lag_s=2 * objective.max_lag_s)
        before = self._usage()
        offsets = poisson(rate_per_s, duration_s, options.seed + len(result.steps))
        counts = self._counted(self.processes.open_step(offsets, duration_s + objective.p99_s))
        step = Step(
            rate_per_s=rate_per_s,
            duration_s=duration_s,
            counts=counts,
            objective=objective,
            batch=options.batch,
            before=before,
            after=self._usage(),
            load=os.getloadavg()[0],
            over_knee=over_knee,
        )
        result.steps.append(step)
        self.on_step(step)
        return step

    def _counted(self, counts: StepCounts) -> StepCounts:
        self.result.stopped |= counts.stopped
        self.result.sent_items += counts.sent_items
        return counts

    def _probe(self) -> float:
        counts = self._counted(self.processes.probe(_PROBE_S))
        return _START_SHARE * max(1, len(counts.latency_s)) / _PROBE_S

    def _usage(self) -> ServerUsage | None:
        if self.options.metrics_url is None:
            return None
        try:
            return read_usage(self.options.metrics_url, self.options.endpoint.token)
        except InvalidRequest as error:
            # If the server is down, the steps show it.
            self.result.unread = str(error)
            return None
