"""A circuit breaker, and work that is done once for all who ask."""

import asyncio
import contextvars

import pytest

from gradewire_server.resilience import Breaker, BreakerState, SingleFlight


class Bench:
    def __init__(self) -> None:
        self.now_s = 0.0
        self.states: list[BreakerState] = []
        self.breaker = Breaker(failures_to_open=3, window_s=10, clock=lambda: self.now_s, changed=self.states.append)

    def fail(self, times: int, every_s: float = 0) -> None:
        for _ in range(times):
            self.breaker.failed()
            self.now_s += every_s


def test_few_failures_leave_it_closed() -> None:
    bench = Bench()
    bench.fail(2)
    assert bench.breaker.closed
    assert not bench.states


def test_enough_failures_in_the_window_open_it() -> None:
    bench = Bench()
    bench.fail(3, every_s=4.9)
    assert bench.states == [BreakerState.OPEN]


def test_rare_failures_never_open_it() -> None:
    bench = Bench()
    bench.fail(50, every_s=6)
    assert bench.breaker.closed


def test_successes_between_do_not_hide_a_flaky_backend() -> None:
    bench = Bench()
    for _ in range(3):
        bench.breaker.failed()
        bench.breaker.succeeded()
    assert not bench.breaker.closed


def test_a_good_probe_closes_it_and_forgets() -> None:
    bench = Bench()
    bench.fail(3)
    bench.breaker.probing()
    assert bench.breaker.state is BreakerState.HALF_OPEN
    bench.breaker.succeeded()
    assert bench.breaker.closed
    bench.fail(2)
    assert bench.breaker.closed


def test_a_bad_probe_opens_it_again() -> None:
    bench = Bench()
    bench.fail(3)
    bench.breaker.probing()
    bench.breaker.failed()
    assert bench.states == [BreakerState.OPEN, BreakerState.HALF_OPEN, BreakerState.OPEN]


def test_a_straggler_s_success_does_not_close_an_open_breaker() -> None:
    bench = Bench()
    bench.fail(3)
    bench.breaker.succeeded()
    assert bench.breaker.state is BreakerState.OPEN


class Work:
    """Counts how often it began; ends when its gate opens."""

    def __init__(self) -> None:
        self.began = 0
        self.gate = asyncio.Event()
        self.error: Exception | None = None

    async def __call__(self) -> int:
        self.began += 1
        await self.gate.wait()
        if self.error is not None:
            raise self.error
        return self.began


async def settled() -> None:
    """Gives tasks, and those that they begin, their first turns."""
    for _ in range(3):
        await asyncio.sleep(0)


async def test_those_who_ask_at_the_same_time_share_one_piece_of_work() -> None:
    flight: SingleFlight[str, int] = SingleFlight()
    work, other = Work(), Work()
    asking = [asyncio.create_task(flight.result("a", work)) for _ in range(3)]
    beside = asyncio.create_task(flight.result("b", other))
    await settled()
    assert (work.began, other.began) == (1, 1)
    assert "a" in flight
    work.gate.set()
    other.gate.set()
    assert await asyncio.gather(*asking, beside) == [1, 1, 1, 1]
    assert "a" not in flight


async def test_who_comes_after_its_end_begins_anew() -> None:
    flight: SingleFlight[str, int] = SingleFlight()
    work = Work()
    work.gate.set()
    assert await flight.result("a", work) == 1
    assert await flight.result("a", work) == 2


async def test_who_gives_up_takes_it_from_nobody() -> None:
    flight: SingleFlight[str, int] = SingleFlight()
    work = Work()
    gone, stays = (asyncio.create_task(flight.result("a", work)) for _ in range(2))
    await settled()
    gone.cancel()
    await asyncio.wait([gone])
    assert "a" in flight
    later = asyncio.create_task(flight.result("a", work))
    work.gate.set()
    assert await asyncio.gather(stays, later) == [1, 1]
    assert gone.cancelled()


async def test_it_goes_on_when_all_have_given_up() -> None:
    flight: SingleFlight[str, int] = SingleFlight()
    work = Work()
    asking = asyncio.create_task(flight.result("a", work))
    await settled()
    asking.cancel()
    await asyncio.wait([asking])
    work.gate.set()
    assert await flight.result("a", work) == 1


async def test_all_are_told_of_its_error_and_the_next_one_tries_again() -> None:
    flight: SingleFlight[str, int] = SingleFlight()
    work = Work()
    work.error = ValueError("broken")
    work.gate.set()
    results = await asyncio.gather(*(flight.result("a", work) for _ in range(2)), return_exceptions=True)
    assert all(isinstance(result, ValueError) for result in results)
    assert work.began == 1
    work.error = None
    assert await flight.result("a", work) == 2


async def test_waiting_for_all_and_cancelling_all() -> None:
    flight: SingleFlight[str, int] = SingleFlight()
    await flight.wait()
    work = Work()
    task = flight.begin("a", work)
    waiting = asyncio.create_task(flight.wait())
    await settled()
    assert not waiting.done()
    work.gate.set()
    await waiting
    assert task.result() == 1
    work.gate.clear()
    asking = asyncio.create_task(flight.result("a", work))
    await settled()
    await flight.cancel()
    assert "a" not in flight
    with pytest.raises(asyncio.CancelledError):
        await asking


async def test_work_may_have_a_context_of_its_own() -> None:
    flight: SingleFlight[str, str] = SingleFlight()
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="none")
    variable.set("the caller's")

    async def read() -> str:
        return variable.get()

    assert await flight.result("a", read) == "the caller's"
    flight.begin("a", read, context=contextvars.Context())
    assert await flight.result("a", read) == "none"
