"""Broken calls are resumed a few times, later each time, as the server asks, and never beyond their deadline."""

import asyncio
import json
from collections.abc import Callable

import pytest

from gradewire._transport.grpc_transport import _CHANNEL_OPTIONS
from gradewire._transport.retries import Retries
from gradewire.errors import DeadlineExceeded, Overloaded, ServerFault, ServerUnreachable, TransportError

GONE = ServerUnreachable("nobody there")


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds of every wait, none of which is waited for."""
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    return waited


async def attempts(retries: Retries, error: TransportError) -> int:
    for attempt in range(1, 100):
        try:
            await retries.wait_after(error)
        except TransportError as raised:
            return attempt if raised is error else -1
    raise AssertionError("it never gave up")


@pytest.mark.parametrize("error", [GONE, Overloaded("full"), DeadlineExceeded("late there")])
async def test_it_gives_up_after_five_attempts(waits: list[float], error: TransportError) -> None:
    assert await attempts(Retries(), error) == 5
    for wait_s, usual_s in zip(waits, (0.2, 0.4, 0.8, 1.6), strict=True):
        assert 0.8 * usual_s <= wait_s <= 1.2 * usual_s


async def test_waits_differ_among_clients(waits: list[float]) -> None:
    for _ in range(8):
        await Retries().wait_after(GONE)
    assert len(set(waits)) > 1


async def test_the_server_says_how_long_to_wait(waits: list[float]) -> None:
    assert await attempts(Retries(), Overloaded("full", retry_after_s=7.5)) == 5
    assert waits == [7.5] * 4


async def test_a_defect_of_the_server_is_raised_at_once(waits: list[float]) -> None:
    assert await attempts(Retries(), ServerFault("broken")) == 1
    assert waits == []


async def test_progress_starts_the_count_anew(waits: list[float]) -> None:
    retries = Retries()
    for _ in range(20):
        await retries.wait_after(GONE)
        retries.progressed()
    assert len(waits) == 20
    assert max(waits) <= 0.24


@pytest.mark.parametrize("error", [GONE, Overloaded("full", retry_after_s=60.0)])
async def test_no_wait_outlasts_the_deadline(waits: list[float], error: TransportError) -> None:
    await Retries(lambda: 0.05).wait_after(error)
    assert waits == [0.05]


async def test_after_the_deadline_it_is_the_deadline_that_is_told(waits: list[float]) -> None:
    late = DeadlineExceeded("not done within deadline_s=1")
    with pytest.raises(DeadlineExceeded, match="deadline_s=1"):
        await Retries(raising(late)).wait_after(GONE)
    assert waits == []


def raising(error: Exception) -> Callable[[], float]:
    def left_s() -> float:
        raise error

    return left_s


def test_grpc_repeats_what_was_not_answered_by_the_same_policy() -> None:
    (method,) = json.loads(str(dict(_CHANNEL_OPTIONS)["grpc.service_config"]))["methodConfig"]
    assert [each["service"] for each in method["name"]] == [
        "gradewire.v1.Scoring",
        "gradewire.v1.References",
        "gradewire.v1.Models",
    ]
    assert method["retryPolicy"] == {
        "maxAttempts": 5,
        "initialBackoff": "0.1s",
        "maxBackoff": "2s",
        "backoffMultiplier": 2,
        "retryableStatusCodes": ["UNAVAILABLE", "RESOURCE_EXHAUSTED", "CANCELLED"],
    }
