"""Broken calls are made again until their deadline: later each time, as the server asks, and never behind it."""

import logging

import pytest

from gradewire._calls import retries as policy
from gradewire._calls.retries import Retries, until_answered
from gradewire.errors import DeadlineExceeded, Overloaded, ServerFault, ServerUnreachable, TransportError

GONE = ServerUnreachable("nobody there")


class Clock:
    """Time that passes only while somebody sleeps."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.waits: list[float] = []

    def monotonic(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds

    def retries(self, deadline_s: float, *resumed_after: type[TransportError]) -> Retries:
        end = self.now + deadline_s
        return Retries(lambda: end - self.now, resumed_after=resumed_after)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(policy, "sleep", clock.sleep)
    monkeypatch.setattr(policy, "time", clock)
    monkeypatch.setattr(policy, "_logged_at", -1000.0)
    return clock


async def attempts(retries: Retries, error: TransportError) -> tuple[int, TransportError]:
    """How often a call that always fails so is made, and what is raised at last."""
    made = 0

    async def call() -> None:
        nonlocal made
        made += 1
        raise error

    with pytest.raises(TransportError) as caught:
        await until_answered(call, retries)
    return made, caught.value


@pytest.mark.parametrize("error", [GONE, Overloaded("full")])
async def test_it_is_tried_until_the_deadline_and_said_how_often(clock: Clock, error: TransportError) -> None:
    made, raised = await attempts(clock.retries(30), error)
    assert type(raised) is type(error)
    assert f"{error}. Tried {made} times in 2" in str(raised) or f"{error}. Tried {made} times in 30" in str(raised)
    assert 29 < sum(clock.waits) < 30, "the last second is tried, and nothing behind it"
    for wait_s, usual_s in zip(clock.waits, (0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0), strict=False):
        assert 0.8 * usual_s <= wait_s <= 1.2 * usual_s
    assert max(clock.waits) <= 2.4


async def test_waits_differ_among_clients(clock: Clock) -> None:
    for _ in range(8):
        await clock.retries(30).wait_after(GONE)
    assert len(set(clock.waits)) > 1


async def test_the_server_says_how_long_to_wait(clock: Clock) -> None:
    made, raised = await attempts(clock.retries(30), Overloaded("full", retry_after_s=7.0))
    assert made == len(clock.waits) + 1
    assert made in {4, 5}
    assert all(7.0 <= wait_s <= 8.4 for wait_s in clock.waits)
    assert raised.retry_after_s == 7.0  # type: ignore[attr-defined]


async def test_what_comes_after_the_deadline_is_not_waited_for(clock: Clock) -> None:
    made, raised = await attempts(clock.retries(30), Overloaded("full", retry_after_s=60.0))
    assert (made, clock.waits) == (1, [])
    assert "Tried once" in str(raised)


class WrongAddress(ServerUnreachable):
    may_pass = False


@pytest.mark.parametrize("error", [ServerFault("broken"), DeadlineExceeded("late"), WrongAddress("no such host")])
async def test_what_trying_cannot_help_is_raised_at_once_and_as_it_is(clock: Clock, error: TransportError) -> None:
    made, raised = await attempts(clock.retries(30), error)
    assert (made, raised, clock.waits) == (1, error, [])


async def test_a_server_that_ends_what_can_be_resumed_is_asked_again(clock: Clock) -> None:
    made, _ = await attempts(clock.retries(30, DeadlineExceeded), DeadlineExceeded("late there"))
    assert made > 5


async def test_the_last_error_tells_of_those_before(clock: Clock) -> None:
    retries = clock.retries(30)
    await retries.wait_after(GONE)
    await retries.wait_after(GONE)
    with pytest.raises(DeadlineExceeded, match=r"^not done\. Tried 3 times in 0\..* s; before that: nobody there$"):
        await retries.wait_after(DeadlineExceeded("not done."))


async def test_progress_makes_waits_short_again(clock: Clock) -> None:
    retries = clock.retries(30)
    for _ in range(20):
        await retries.wait_after(GONE)
        retries.progressed()
    assert max(clock.waits) <= 0.12


async def test_a_long_break_is_told_once_and_its_end(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    calls = [clock.retries(60) for _ in range(4)]
    with caplog.at_level(logging.WARNING, "gradewire.retries"):
        for _ in range(4):
            for retries in calls:
                await retries.wait_after(GONE)
        for retries in calls:
            retries.progressed()
    began, ended = (record.getMessage() for record in caplog.records)
    assert began.startswith("nobody there; retrying until ")
    assert ended.startswith("the server answers again after ")


async def test_a_short_break_is_not_worth_a_line(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    retries = clock.retries(60)
    with caplog.at_level(logging.WARNING, "gradewire.retries"):
        for _ in range(4):
            await retries.wait_after(GONE)
        retries.progressed()
    assert caplog.records == []
