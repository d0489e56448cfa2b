"""Steps as a run gives them."""

from collections import Counter
from typing import Any

from gradewire.load_testing.counts import CallTimes, Ended, StepCounts
from gradewire.load_testing.server_figures import ServerFigures
from gradewire.load_testing.steps import Objective, Step

OBJECTIVE = Objective(p99_s=0.25, max_lag_s=0.025)


def counts_of(
    latency_s: float, *, scored: int = 1000, refused: int = 0, hinted: int = 0, failed: int = 0
) -> StepCounts:
    counts = StepCounts()
    ends = [Ended("OK", statuses=Counter(OK=1))] * scored + [Ended("RESOURCE_EXHAUSTED", hinted=True)] * hinted
    ends += [Ended("RESOURCE_EXHAUSTED")] * (refused - hinted) + [Ended("UNAVAILABLE")] * failed
    for ended in ends:
        counts.due += 1
        counts.sent_items += 1
        counts.words += 4
        counts.lag.record(0.001)
        counts.count(ended, CallTimes(0.0, 0.001, latency_s), 1, in_time_until_s=10.0)
    return counts


def server_figures(**changes: float) -> ServerFigures:
    usual: dict[str, Any] = {
        "cpu_s": 10.0,
        "resident_bytes": 400 * 2**20,
        "items_in_flight": 0.0,
        "admission_wait_s": 0.0,
        "judge_queue_items": 0.0,
        "cached_texts": 0.0,
        "computed_texts": 0.0,
    }
    return ServerFigures(**usual | changes)


def step_of(counts: StepCounts, **changes: Any) -> Step:
    usual: dict[str, Any] = {"rate_per_s": 100.0, "duration_s": 10.0, "objective": OBJECTIVE, "batch": 1}
    return Step(counts=counts, **usual | changes)
