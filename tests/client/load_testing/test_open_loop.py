"""A server that stalls once: the open loop shows what queueing arithmetic gives; a closed loop hides it."""

import asyncio
from collections import Counter
from collections.abc import Sequence

import pytest
from tests.client.load_testing.virtual_time import run_virtually

from gradewire.load_testing.arrivals import constant
from gradewire.load_testing.content.mixes import MIXES
from gradewire.load_testing.counts import REFUSED, STOPPED, Ended, StepCounts
from gradewire.load_testing.open_loop import open_loop
from gradewire.load_testing.sender import Sender, send_once
from gradewire_proto.v1 import types_pb2

SERVICE_S, INTERVAL_S, CALLS = 0.002, 0.010, 1000
STALL_BEGINS_S, STALL_S = 5.0, 1.0


class OneAtATime:
    """A server that takes 2 ms for each call, in their order, and does nothing at all for one second."""

    def __init__(self) -> None:
        self._free_s = 0.0

    async def call(self, items: Sequence[types_pb2.Item]) -> Ended:
        now_s = asyncio.get_running_loop().time()
        begins_s = max(now_s, self._free_s)
        if STALL_BEGINS_S <= begins_s < STALL_BEGINS_S + STALL_S:
            begins_s = STALL_BEGINS_S + STALL_S
        self._free_s = begins_s + SERVICE_S
        await asyncio.sleep(self._free_s - now_s)
        return Ended("OK", statuses=Counter(OK=len(items)))

    async def close(self) -> None:
        return


def sender(caller: OneAtATime | None = None) -> Sender:
    return Sender(caller or OneAtATime(), MIXES["short"].items("0"), batch=1)


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
    run_virtually(measured.open(constant(1 / INTERVAL_S, CALLS * INTERVAL_S).tolist()))
    latency, expected = measured.counts.latency, sorted(expected_latencies())
    assert len(latency) == CALLS == measured.counts.due
    # 125 calls wait: the queue of one second is worked off at 8 ms a call.
    assert sum(each > SERVICE_S + 1e-9 for each in expected) == 125
    for percentile in (50, 85, 90, 95, 99, 99.9, 100):
        wanted = expected[round(percentile / 100 * CALLS) - 1]
        assert latency.percentile_s(percentile) == pytest.approx(wanted, rel=2e-3), percentile
    assert latency.percentile_s(99) == pytest.approx(0.93, abs=0.01)
    assert measured.counts.lag.max_s == 0


def test_a_closed_loop_hides_the_same_stall() -> None:
    measured = sender()
    run_virtually(measured.closed(CALLS * INTERVAL_S, 1))
    latency = measured.counts.latency
    assert latency.max_s == pytest.approx(STALL_S, rel=0.01)
    assert latency.percentile_s(99.9) == pytest.approx(SERVICE_S, rel=2e-3)


def test_a_client_that_is_late_tells_so_and_its_lateness_counts() -> None:
    late_s = 0.3

    class Blocking(OneAtATime):
        """Holds the client's own event loop once, as a collection of garbage does."""

        async def call(self, items: Sequence[types_pb2.Item]) -> Ended:
            loop = asyncio.get_running_loop()
            if loop.time() == pytest.approx(1.0):
                loop._selector.now_s += late_s  # type: ignore[attr-defined]
            return await super().call(items)

    measured = sender(Blocking())
    run_virtually(measured.open(constant(1 / INTERVAL_S, 2.0).tolist()))
    counts = measured.counts
    assert counts.lag.max_s == pytest.approx(late_s - INTERVAL_S, rel=0.05)
    assert counts.latency.max_s >= counts.lag.max_s
    assert counts.due == len(counts.latency) == 200


def test_calls_in_time_are_those_scored_before_the_limit() -> None:
    measured = sender()
    measured.in_time_until_s = STALL_BEGINS_S + STALL_S / 2
    run_virtually(measured.open(constant(1 / INTERVAL_S, CALLS * INTERVAL_S).tolist()))
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
        work = asyncio.create_task(measured.open(constant(1 / INTERVAL_S, 10.0).tolist()))
        await asyncio.sleep(STALL_BEGINS_S + STALL_S / 2)
        work.cancel()
        await asyncio.wait((work,))
        return measured.counts

    counts = run_virtually(stopped())
    assert counts.codes[STOPPED] == pytest.approx(STALL_S / 2 / INTERVAL_S, abs=2)
    assert counts.failed == 0
    assert len(counts.latency) + counts.codes[STOPPED] == counts.due


def test_what_is_sent_once_is_sent_again_after_a_refusal() -> None:
    seen: list[str] = []

    class Refusing(OneAtATime):
        async def call(self, items: Sequence[types_pb2.Item]) -> Ended:
            seen.extend(item.prediction for item in items)
            return Ended(REFUSED, hinted=True) if len(seen) < 5 else await super().call(items)

    items = [types_pb2.Item(prediction=str(number)) for number in range(7)]
    run_virtually(send_once(Refusing(), items, batch=2, in_flight=2))
    assert set(seen) == {item.prediction for item in items}
    assert len(seen) > len(items)


def test_a_server_that_refuses_everything_is_not_asked_for_ever() -> None:
    class Refusing(OneAtATime):
        calls = 0

        async def call(self, items: Sequence[types_pb2.Item]) -> Ended:
            del items
            type(self).calls += 1
            return Ended(REFUSED, hinted=True)

    async def ended_s() -> float:
        await send_once(Refusing(), [types_pb2.Item()] * 7, batch=2, in_flight=2)
        return asyncio.get_running_loop().time()

    assert 20 <= run_virtually(ended_s()) < 22
    assert 150 < Refusing.calls < 250
