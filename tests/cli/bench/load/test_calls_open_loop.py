"""A server that stalls once: the open loop shows what queueing arithmetic gives; a closed loop hides it."""

import asyncio
import math
from array import array
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from tests.cli.bench.load.samples import even_offsets
from tests.cli.bench.load.virtual_time import run_virtually
from tests.support.examples import example_count

from gradewire_cli.bench.load.calls import STOPPED, CallResult, Sender, StepCounts, open_loop, percentile_s, poisson
from gradewire_cli.bench.load.content import MIXES
from gradewire_proto.v1 import types_pb2

SERVICE_S, INTERVAL_S, CALLS = 0.002, 0.010, 1000
STALL_BEGINS_S, STALL_S = 5.0, 1.0


class OneAtATime:
    """A server that takes 2 ms for each call, in their order, and does nothing at all for one second."""

    def __init__(self) -> None:
        self._free_s = 0.0

    async def call(self, items: Sequence[types_pb2.Item]) -> CallResult:
        now_s = asyncio.get_running_loop().time()
        begins_s = max(now_s, self._free_s)
        if STALL_BEGINS_S <= begins_s < STALL_BEGINS_S + STALL_S:
            begins_s = STALL_BEGINS_S + STALL_S
        self._free_s = begins_s + SERVICE_S
        await asyncio.sleep(self._free_s - now_s)
        return CallResult("OK", statuses=Counter(OK=len(items)))

    async def close(self) -> None:
        return


def sender(caller: OneAtATime | None = None) -> Sender:
    return Sender(caller or OneAtATime(), MIXES["short"].supply(0, 0, 1), batch=1)


def expected_latencies() -> list[float]:
    """By arithmetic: call number k after the stall began waits for its end and for the k calls before it."""
    found = []
    for number in range(CALLS):
        k = number - round(STALL_BEGINS_S / INTERVAL_S)
        queued = STALL_S - k * INTERVAL_S + k * SERVICE_S if k >= 0 else 0.0
        found.append(SERVICE_S + max(0.0, queued))
    return found


def test_the_open_loop_shows_a_stall_in_all_calls_that_waited_for_it() -> None:
    measured = sender()
    run_virtually(measured.open(even_offsets(1 / INTERVAL_S, CALLS * INTERVAL_S).tolist()))
    latency, expected = measured.counts.latency_s, sorted(expected_latencies())
    assert len(latency) == CALLS == measured.counts.due
    # 125 calls wait: the queue of one second is worked off at 8 ms a call.
    assert sum(each > SERVICE_S + 1e-9 for each in expected) == 125
    for percentile in (50, 85, 90, 95, 99, 99.9, 100):
        wanted = expected[round(percentile / 100 * CALLS) - 1]
        assert percentile_s(latency, percentile) == pytest.approx(wanted, rel=2e-3), percentile
    assert percentile_s(latency, 99) == pytest.approx(0.93, abs=0.01)
    assert max(measured.counts.lag_s) == 0


def test_a_closed_loop_hides_the_same_stall() -> None:
    measured = sender()
    run_virtually(measured.closed(CALLS * INTERVAL_S, 1))
    latency = measured.counts.latency_s
    assert max(latency) == pytest.approx(STALL_S, rel=0.01)
    assert percentile_s(latency, 99.9) == pytest.approx(SERVICE_S, rel=2e-3)


def test_a_client_that_is_late_tells_so_and_its_lateness_counts() -> None:
    late_s = 0.3

    class Blocking(OneAtATime):
        """Holds the client's own event loop once, as a collection of garbage does."""

        async def call(self, items: Sequence[types_pb2.Item]) -> CallResult:
            loop = asyncio.get_running_loop()
            if loop.time() == pytest.approx(1.0):
                loop._selector.now_s += late_s  # type: ignore[attr-defined]
            return await super().call(items)

    measured = sender(Blocking())
    run_virtually(measured.open(even_offsets(1 / INTERVAL_S, 2.0).tolist()))
    counts = measured.counts
    assert max(counts.lag_s) == pytest.approx(late_s - INTERVAL_S, rel=0.05)
    assert max(counts.latency_s) >= max(counts.lag_s)
    assert counts.due == len(counts.latency_s) == 200


def test_calls_in_time_are_those_scored_before_the_limit() -> None:
    measured = sender()
    measured.in_time_until_s = STALL_BEGINS_S + STALL_S / 2
    run_virtually(measured.open(even_offsets(1 / INTERVAL_S, CALLS * INTERVAL_S).tolist()))
    assert measured.counts.in_time == STALL_BEGINS_S / INTERVAL_S


def test_an_error_of_a_call_ends_the_loop() -> None:
    async def broken(due_s: float) -> None:
        raise ArithmeticError(f"due {due_s}")

    with pytest.raises(ExceptionGroup) as raised:
        run_virtually(open_loop([0.0, 1.0], broken))
    assert str(raised.value.exceptions[0]) == "due 0.0"


def test_calls_that_are_on_their_way_when_the_run_is_stopped_are_counted_apart() -> None:
    measured = sender()

    async def stopped() -> StepCounts:
        work = asyncio.create_task(measured.open(even_offsets(1 / INTERVAL_S, 10.0).tolist()))
        await asyncio.sleep(STALL_BEGINS_S + STALL_S / 2)
        work.cancel()
        await asyncio.wait((work,))
        return measured.counts

    counts = run_virtually(stopped())
    assert counts.codes[STOPPED] == pytest.approx(STALL_S / 2 / INTERVAL_S, abs=2)
    assert counts.failed == 0
    assert len(counts.latency_s) + counts.codes[STOPPED] == counts.due


def test_gaps_of_poisson_arrivals_are_exponential_and_repeat_with_the_seed() -> None:
    offsets = poisson(200.0, 50.0, seed=3)
    assert abs(len(offsets) - 10_000) < 5 * 100  # five standard deviations
    assert stats.kstest(np.diff(offsets), "expon", args=(0, 1 / 200)).pvalue > 0.01
    assert (np.diff(offsets) >= 0).all()
    assert offsets[-1] < 50
    assert np.array_equal(offsets, poisson(200.0, 50.0, seed=3))
    assert not np.array_equal(offsets[:10], poisson(200.0, 50.0, seed=4)[:10])
    # Counts of a second vary as much as their mean.
    counts = np.bincount(offsets.astype(int), minlength=50)
    assert 0.5 < counts.var() / counts.mean() < 1.8


@given(st.lists(st.floats(1e-6, 3000), min_size=1, max_size=200), st.sampled_from([0.0, 50, 90, 95, 99, 99.9, 100]))
@settings(max_examples=example_count(30))
def test_so_many_calls_lie_at_or_below_a_percentile(values_s: list[float], percentile: float) -> None:
    found = percentile_s(array("d", values_s), percentile)
    at_most = sum(value <= found for value in values_s)
    below = sum(value < found for value in values_s)
    assert below < max(1, percentile / 100 * len(values_s)) <= at_most + 1e-9
    assert math.isnan(percentile_s(array("d"), percentile))
