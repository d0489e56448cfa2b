"""Who posts, and who may share a call with whom."""

import asyncio
import base64
import itertools
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, TypeVar

import hypothesis
import pytest
from hypothesis import strategies

from gradewire.rewards import Answer, RewardSample, RewardScorer
from gradewire.transport import Metadata
from gradewire_gateway import rewards
from gradewire_gateway.json_work import Json
from gradewire_gateway.requests import call_options, new_record
from gradewire_gateway.rewards import CallerScorers, caller_of, make_scorer
from gradewire_gateway.settings import RewardPostSettings

T = TypeVar("T")


def caller(authorization: str, peer: tuple[str, int] = ("10.0.0.7", 5000), *, send_peer: bool = True) -> Metadata:
    scope: dict[str, Any] = {"headers": [(b"authorization", authorization.encode("latin-1"))], "client": peer}
    new_record(scope)
    return caller_of(call_options(scope, send_peer=send_peer))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("Bearer t", "Bearer t"),
        (f"Basic {base64.b64encode(b'any:t:1').decode()}", "Bearer t:1"),
        (f"basic {base64.b64encode(b'any:').decode()}", ""),
        (f"basic {base64.b64encode(bytes([255, 58, 65])).decode()}", ""),
        ("Basic !", ""),
        ("", ""),
    ],
)
def test_the_password_of_a_url_is_the_token(given: str, expected: str) -> None:
    assert dict(caller(given)).get("authorization", "") == expected


@hypothesis.given(strategies.text(strategies.characters(max_codepoint=255), max_size=40))
def test_whatever_stands_there_can_be_sent_on(given: str) -> None:
    for found in (caller(given), caller(f"Basic {base64.b64encode(given.encode('latin-1')).decode()}")):
        assert all(value.isascii() and value.isprintable() for _, value in found)


def test_hosts_are_told_apart_where_the_server_is_told_them() -> None:
    assert caller("", ("10.0.0.7", 1)) == caller("", ("10.0.0.7", 2)) != caller("", ("10.0.0.8", 1))
    assert caller("", ("::1", 1)) == (("x-gradewire-peer", "[::1]:0"),)
    assert caller("", ("10.0.0.7", 1), send_peer=False) == caller("", ("10.0.0.8", 1), send_peer=False)


async def test_scorers_are_kept_while_there_is_room_and_never_taken_from_their_users() -> None:
    made: list[Any] = []

    def make(who: Any) -> RewardScorer:
        made.append(who)
        return make_scorer(RewardPostSettings())

    scorers = CallerScorers(make, most_idle=2)
    async with scorers.of("a") as first:
        for who in "bcd":
            async with scorers.of(who):
                pass
        async with scorers.of("a") as again:
            assert again is first
    assert made == ["a", "b", "c", "d"]
    assert len(scorers) == 2
    await asyncio.gather(*(_use(scorers, "a") for _ in range(3)))
    assert made == ["a", "b", "c", "d"], "the one that was used last is kept"
    await scorers.close()
    assert len(scorers) == 0


async def _use(scorers: CallerScorers, who: str) -> None:
    async with scorers.of(who):
        await asyncio.sleep(0)


async def test_the_thread_finds_the_answers_of_small_posts_too_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[int] = []
    turns: list[int] = []
    clock = itertools.count(step=0.005)

    def found(completion: str, _extraction: object) -> Answer:
        threads.append(threading.get_ident())
        return Answer(completion, "whole")

    class Counting(Json):
        async def run_on_thread(self, work: Callable[[], T]) -> T:
            turns.append(len(threads))
            return await super().run_on_thread(work)

    monkeypatch.setattr(rewards, "extract_answer", found)
    monkeypatch.setattr(rewards, "monotonic", lambda: next(clock))
    gateway: Any = SimpleNamespace(json=Counting(), settings=SimpleNamespace(rewards=RewardPostSettings()))
    samples = [RewardSample(completion=str(number), references=["x"]) for number in range(8)]
    answers = await rewards.answers_in(gateway, samples)
    gateway.json.close()
    assert [answer.text for answer in answers] == [str(number) for number in range(8)]
    assert threading.get_ident() not in threads
    assert turns == [0, 3, 6]
