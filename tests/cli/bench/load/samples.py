"""Steps as a run gives them."""

from collections import Counter
from typing import Any

import numpy as np

from gradewire_cli.bench.load.calls import CallResult, Objective, Offsets, StepCounts
from gradewire_cli.bench.load.run import ServerUsage, Step

OBJECTIVE = Objective(p99_s=0.25, max_lag_s=0.025)


def even_offsets(rate_per_s: float, duration_s: float) -> Offsets:
    """Arrivals at equal intervals."""
    return np.arange(round(rate_per_s * duration_s), dtype=np.float64) / rate_per_s


def counts_of(
    latency_s: float, *, scored: int = 1000, refused: int = 0, hinted: int = 0, failed: int = 0
) -> StepCounts:
    counts = StepCounts()
    results = [CallResult("OK", statuses=Counter(OK=1))] * scored + [
        CallResult("RESOURCE_EXHAUSTED", hinted=True)
    ] * hinted
    results += [CallResult("RESOURCE_EXHAUSTED")] * (refused - hinted) + [CallResult("UNAVAILABLE")] * failed
    for result in results:
        counts.due += 1
        counts.sent_items += 1
        counts.lag_s.append(0.001)
        counts.count(result, items=1, latency_s=latency_s, in_time=latency_s <= 10.0)
    return counts


def usage(cpu_s: float = 10.0, resident_bytes: float = 400 * 2**20) -> ServerUsage:
    return ServerUsage(cpu_s, resident_bytes)


def step_of(counts: StepCounts, **changes: Any) -> Step:
    usual: dict[str, Any] = {"rate_per_s": 100.0, "duration_s": 10.0, "objective": OBJECTIVE, "batch": 1}
    return Step(counts=counts, **usual | changes)
