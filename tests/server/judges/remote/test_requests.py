"""Whatever a probe meets, the next one follows."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.server.judges.remote.remote_judges import eventually, prompt
from tests.support.examples import example_count

from gradewire_proto.wire_rules import Backoff
from gradewire_server.domain.caller import set_current_caller
from gradewire_server.domain.items import Timing
from gradewire_server.judges.connections.places import OwnPlaces
from gradewire_server.judges.remote.errors import RemoteError, server_error, unreachable
from gradewire_server.judges.remote.http_client import HttpClient
from gradewire_server.judges.remote.requests import Answered, RequestQueue, ServerAvailability
from gradewire_server.judges.remote.server import Answer, Question
from gradewire_server.settings.judge import RemoteJudgeConfig


async def untested(error: RemoteError) -> RemoteError:
    raise AssertionError(f"a failed connection needs no test question: {error}")


async def recovers(probe: Callable[[], Awaitable[None]]) -> None:
    availability = ServerAvailability("m", probe, untested, backoff=Backoff(0.01, 0.01), probe_timeout_s=0.05)
    try:
        await availability.failed(unreachable("http://h/v1"), sent_s=0.0)
        assert availability.trouble
        await eventually(lambda: not availability.trouble)
        assert availability.refusal() is None
    finally:
        await availability.close()


@pytest.mark.parametrize("answered", [True, False])
async def test_requests_that_failed_together_cost_one_test_question(answered: bool) -> None:  # noqa: FBT001
    tested: list[RemoteError] = []

    async def probe() -> None:
        raise unreachable("http://h/v1")

    async def test(error: RemoteError) -> RemoteError | None:
        tested.append(error)
        await asyncio.sleep(0.01)
        return None if answered else server_error(at="the test question's server")

    availability = ServerAvailability("m", probe, test)
    try:
        sent_s = time.monotonic()
        await asyncio.gather(*(availability.failed(server_error(), sent_s=sent_s) for _ in range(20)))
        assert len(tested) == 1
        assert availability.trouble == ("" if answered else "the test question's server failed. Try again")
    finally:
        await availability.close()


async def test_a_test_question_without_an_answer_leaves_the_items_error() -> None:
    async def test(error: RemoteError) -> RemoteError | None:
        await asyncio.sleep(60)
        raise error

    async def probe() -> None:
        raise unreachable("http://h/v1")

    availability = ServerAvailability("m", probe, test, probe_timeout_s=0.05)
    try:
        await availability.failed(server_error(at="it"), sent_s=time.monotonic())
        assert availability.trouble == "it failed. Try again"
    finally:
        await availability.close()


async def test_a_server_that_takes_a_probe_and_is_silent_is_probed_again() -> None:
    connections: list[asyncio.StreamWriter] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(writer)
        if len(connections) > 1:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    client = HttpClient(RemoteJudgeConfig(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", "m"))

    async def probe() -> None:
        assert (await client.send("models")).status == 200

    try:
        await recovers(probe)
        assert len(connections) == 2
    finally:
        await client.close()
        for writer in connections:
            writer.close()
        server.close()


@pytest.mark.parametrize("error", [unreachable("http://h/v1"), RuntimeError("a user's text"), OSError()])
async def test_no_error_of_a_probe_ends_the_watch(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    errors = [error, error]

    async def probe() -> None:
        if errors:
            raise errors.pop()

    await recovers(probe)
    assert errors == []
    assert "a user's text" not in caplog.text


def question(name: str) -> Question:
    return Question(prompt(name), options=("1", "2"))


def names(questions: Sequence[Question]) -> list[str]:
    return [each.prompt.prediction for each in questions]


def answer(one: Question) -> Answered:
    return Answer(one.prompt.prediction, whole=True, steps=None, continued=False), one.prompt


@dataclass
class Asked:
    """What stands behind a queue: remembers requests, answers when `gate` is open, takes as many as `most`."""

    most: int = 1
    apart: bool = False
    error: Exception | None = None
    requests: list[list[str]] = field(default_factory=list)
    under_way: int = 0
    most_under_way: int = 0
    cancelled: int = 0
    gate: asyncio.Event = field(default_factory=asyncio.Event)

    async def send(self, questions: Sequence[Question], deadline_s: float | None) -> Sequence[Answered | None]:
        if len(questions) == 1:
            return [await self.alone(questions[0], deadline_s)]
        return await self.together(questions, deadline_s)

    async def alone(self, one: Question, deadline_s: float | None) -> Answered:
        await self._heard([one], deadline_s)
        return answer(one)

    async def together(self, questions: Sequence[Question], deadline_s: float | None) -> Sequence[Answered | None]:
        await self._heard(questions, deadline_s)
        return [None if self.apart else answer(each) for each in questions]

    async def _heard(self, questions: Sequence[Question], deadline_s: float | None) -> None:
        self.requests.append([*names(questions), *([] if deadline_s is None else [f"until {deadline_s:g}"])])
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.under_way -= 1
        if self.error is not None:
            raise self.error


def queue(asked: Asked, max_in_flight: int = 1) -> RequestQueue:
    return RequestQueue(OwnPlaces(max_in_flight), asked.most, asked.send)


def ask(
    into: RequestQueue, name: str, subject: str | None = "s", deadline_s: float | None = None
) -> asyncio.Task[Answered]:
    return asyncio.create_task(into.ask(question(name), subject, deadline_s, Timing()))


async def test_the_one_that_waits_longest_begins_and_its_subject_s_come_along() -> None:
    asked = Asked(most=2)
    waiting = queue(asked)
    calls = [ask(waiting, *each) for each in [("a", "s"), ("b", "t"), ("c", "s"), ("d", "s"), ("e", None), ("f", None)]]
    asked.gate.set()
    answers = await asyncio.gather(*calls)
    assert asked.requests == [["a", "c"], ["b"], ["d"], ["e"], ["f"]]
    assert [each[0].text for each in answers] == list("abcdef")
    assert asked.most_under_way == 1


async def test_comparisons_do_not_grow_with_the_queue() -> None:
    compared = 0

    class Subject:
        def __init__(self, number: int) -> None:
            self.number = number

        def __hash__(self) -> int:
            return self.number

        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return isinstance(other, Subject) and self.number == other.number

    asked = Asked(most=2)
    asked.gate.set()
    waiting = queue(asked)
    subjects = [Subject(number) for number in [*range(300), *range(300)]]
    await asyncio.gather(*(waiting.ask(question(""), each, None, Timing()) for each in subjects))
    assert [len(each) for each in asked.requests] == [2] * 300
    assert compared <= 10 * len(subjects)


async def test_deadlines_of_a_request_are_the_latest_and_none_where_one_has_none() -> None:
    asked = Asked(most=2)
    asked.gate.set()
    waiting = queue(asked)
    await asyncio.gather(ask(waiting, "a", "s", 5.0), ask(waiting, "b", "s", 7.0))
    await asyncio.gather(ask(waiting, "c", "s", 5.0), ask(waiting, "d", "s"))
    await ask(waiting, "e", "s", 3.0)
    assert asked.requests == [["a", "b", "until 7"], ["c", "d"], ["e", "until 3"]]


async def test_those_that_are_asked_apart_are_asked_before_others_and_one_who_left_is_not() -> None:
    asked = Asked(most=3, apart=True)
    waiting = queue(asked)
    calls = [ask(waiting, name) for name in "abc"]
    await eventually(lambda: asked.requests == [["a", "b", "c"]])
    calls += [ask(waiting, "d"), ask(waiting, "e", "t")]
    await asyncio.sleep(0)
    calls[1].cancel()
    asked.gate.set()
    replies = await asyncio.gather(*calls, return_exceptions=True)
    assert asked.requests == [["a", "b", "c"], ["a"], ["c"], ["d"], ["e"]]
    assert isinstance(replies[1], asyncio.CancelledError)
    assert asked.most_under_way == 1


async def test_one_who_leaves_while_asked_apart_does_not_hold_up_its_mates() -> None:
    asked = Asked(most=2, apart=True)
    waiting = queue(asked)
    gone, stays = ask(waiting, "a"), ask(waiting, "b")
    await eventually(lambda: asked.requests == [["a", "b"]])
    asked.gate.set()
    await asyncio.sleep(0)
    asked.gate.clear()  # the server says no more
    await eventually(lambda: asked.requests[1:] == [["a"]])
    gone.cancel()
    await eventually(lambda: asked.requests[2:] == [["b"]])
    assert asked.cancelled == 1
    asked.gate.set()
    assert (await stays)[0].text == "b"


async def test_those_that_are_asked_apart_do_not_wait_for_each_other_where_there_are_places() -> None:
    asked = Asked(most=3, apart=True)
    waiting = queue(asked, 2)
    calls = [ask(waiting, name) for name in "abc"]
    await eventually(lambda: asked.requests == [["a", "b", "c"]])
    asked.gate.set()
    await asyncio.sleep(0)
    asked.gate.clear()
    await eventually(lambda: asked.under_way == 2)
    asked.gate.set()
    assert [each[0].text for each in await asyncio.gather(*calls)] == list("abc")
    assert asked.most_under_way == 2


@pytest.mark.parametrize("error", [server_error(), KeyError("a defect")])
async def test_what_goes_wrong_is_told_to_all_and_frees_the_place(error: Exception) -> None:
    asked = Asked(most=2, error=error)
    asked.gate.set()
    waiting = queue(asked)
    told = await asyncio.gather(ask(waiting, "a"), ask(waiting, "b"), ask(waiting, "c", "t"), return_exceptions=True)
    assert told == [error] * 3
    asked.error = None
    assert (await ask(waiting, "d"))[0].text == "d"


async def test_one_who_leaves_before_its_turn_takes_no_place() -> None:
    asked = Asked(most=2)
    waiting = queue(asked)
    first = ask(waiting, "a", "t")
    await eventually(lambda: asked.requests == [["a"]])
    gone, beside = ask(waiting, "b"), ask(waiting, "c")
    await asyncio.sleep(0)
    gone.cancel()
    await asyncio.gather(gone, return_exceptions=True)
    late = ask(waiting, "d", "u")
    await asyncio.sleep(0)
    late.cancel()
    asked.gate.set()  # in the turn of the loop in which it was cancelled
    await asyncio.gather(first, beside, late, return_exceptions=True)
    assert asked.requests == [["a"], ["c"]]


async def test_closing_cancels_what_is_under_way() -> None:
    asked = Asked(most=2)
    waiting = queue(asked)
    calls = [ask(waiting, name) for name in "ab"]
    await eventually(lambda: asked.under_way == 1)
    await waiting.close()
    assert all(
        isinstance(each, asyncio.CancelledError) for each in await asyncio.gather(*calls, return_exceptions=True)
    )
    assert asked.cancelled == 1


@pytest.mark.parametrize("leaves", [False, True])
async def test_closing_ends_a_question_that_its_caller_sends_but_not_the_caller(leaves: bool) -> None:  # noqa: FBT001
    async def goes_on(name: str) -> str:
        try:
            await waiting.ask(question(name), None, None, Timing())
        except asyncio.CancelledError:
            await asyncio.sleep(0.01)
            task = asyncio.current_task()
            return "left" if task is not None and task.cancelling() else "ended"
        return "answered"

    asked = Asked()
    waiting = queue(asked, max_in_flight=2)
    calls = [asyncio.create_task(goes_on(name)) for name in "abc"]
    await eventually(lambda: asked.under_way == 2)
    if leaves:
        calls[0].cancel()
    await waiting.close()
    assert asked.under_way == 0
    async with asyncio.timeout(10):
        assert await asyncio.gather(*calls) == ["left" if leaves else "ended", "ended", "ended"]
    assert (asked.cancelled, asked.requests) == (2, [["a"], ["b"]])


@pytest.mark.parametrize("turns", range(6))  # after some of them, the second one has a place and has not yet begun
async def test_a_question_whose_turn_has_come_is_not_sent_after_closing(turns: int) -> None:
    asked = Asked()
    waiting = queue(asked)
    first = ask(waiting, "a", None)
    await eventually(lambda: asked.under_way == 1)
    second = ask(waiting, "b", None)
    await asyncio.sleep(0)
    first.cancel()
    for _ in range(turns):
        await asyncio.sleep(0)
    sent = len(asked.requests)
    await waiting.close()
    async with asyncio.timeout(10):
        ended = await asyncio.gather(first, second, return_exceptions=True)
    assert all(isinstance(each, asyncio.CancelledError) for each in ended)
    assert (len(asked.requests), asked.under_way) == (sent, 0)


async def test_one_that_leaves_with_its_place_before_it_sends_frees_it() -> None:
    asked = Asked()
    asked.gate.set()
    waiting = queue(asked)
    first, second = ask(waiting, "a", None), ask(waiting, "b", None)
    await first
    second.cancel()
    await asyncio.gather(second, return_exceptions=True)
    assert (await ask(waiting, "c", None))[0].text == "c"


async def test_closing_ends_who_waits_and_what_was_about_to_start() -> None:
    asked = Asked()
    waiting = queue(asked)
    calls = [ask(waiting, name, name) for name in "ab"]
    await asyncio.sleep(0)
    await asyncio.sleep(0)  # the request of the first one is a task that has yet to begin
    await waiting.close()
    async with asyncio.timeout(10):
        ended = await asyncio.gather(*calls, return_exceptions=True)
    assert all(isinstance(each, asyncio.CancelledError) for each in ended)
    assert asked.requests == []


async def test_time_is_told_apart_as_waiting_and_asking() -> None:
    asked = Asked(most=2)
    waiting = queue(asked)
    first, second, never = Timing(), Timing(), Timing()
    calls = [
        asyncio.create_task(waiting.ask(question(name), name, None, timing))
        for name, timing in (("a", first), ("b", second), ("c", never))
    ]
    await eventually(lambda: asked.under_way == 1)
    await asyncio.sleep(0.02)
    calls[2].cancel()
    await asyncio.gather(calls[2], return_exceptions=True)
    asked.gate.set()
    await asyncio.gather(*calls[:2])
    assert first.inference_s > 0
    assert second.queue_s >= first.inference_s * 0.9
    assert never.queue_s > 0
    assert never.inference_s == 0


Steps = st.lists(
    st.tuples(st.sampled_from(["ask", "leave", "open", "turn"]), st.integers(0, 3), st.booleans()), max_size=40
)


@given(Steps, st.integers(1, 3), st.integers(1, 3))
@settings(max_examples=example_count(150))
def test_whoever_stays_is_answered_once_and_no_more_are_under_way_than_allowed(
    steps: list[tuple[str, int, bool]], max_in_flight: int, most: int
) -> None:
    async def run() -> None:
        asked = Asked(most=most)
        waiting = queue(asked, max_in_flight)
        calls: dict[str, asyncio.Task[Any]] = {}
        for step, number, apart in steps:
            if step == "ask":
                name = str(len(calls))
                calls[name] = ask(waiting, name, f"s{number}" if number else None)
            elif step == "leave" and calls:
                list(calls.values())[number % len(calls)].cancel()
            elif step == "open":
                asked.apart = apart
                asked.gate.set()
                await asyncio.sleep(0)
                asked.gate.clear()
            else:
                await asyncio.sleep(0)
        asked.gate.set()
        for name, call in calls.items():
            try:
                assert (await call)[0].text == name
            except asyncio.CancelledError:
                assert call.cancelled()
            except RemoteError as error:
                raise AssertionError from error
        assert asked.most_under_way <= max_in_flight
        assert all(len(request) <= most for request in asked.requests)
        await eventually(lambda: asked.under_way == 0)
        # All places are free again.
        before = len(asked.requests)
        await asyncio.gather(*(ask(waiting, str(n), None) for n in range(max_in_flight)))
        assert len(asked.requests) == before + max_in_flight

    asyncio.run(run())


async def test_callers_take_turns() -> None:
    async def asked_by(caller: str, name: str) -> Answered:
        set_current_caller(caller)
        return await waiting.ask(question(name), None, None, Timing())

    asked = Asked()
    waiting = queue(asked)
    calls = [asyncio.create_task(asked_by("many", f"m{number}")) for number in range(4)]
    await eventually(lambda: asked.requests == [["m0"]])
    calls += [asyncio.create_task(asked_by("few", f"f{number}")) for number in range(2)]
    await asyncio.sleep(0)
    asked.gate.set()
    await asyncio.gather(*calls)
    assert asked.requests == [["m0"], ["m1"], ["f0"], ["m2"], ["f1"], ["m3"]]


class FewPlaces(OwnPlaces):
    """One place, which another process has at first."""

    def __init__(self) -> None:
        super().__init__(1)
        self.elsewhere = super().take()
        self.wishes: list[bool] = []

    def take(self) -> bool:
        return not self.elsewhere and super().take()

    def wish(self, *, more: bool) -> float | None:
        self.wishes.append(more)
        return 0.01 if more else None


async def test_a_place_that_another_process_leaves_is_found() -> None:
    asked, places = Asked(), FewPlaces()
    asked.gate.set()
    waiting = RequestQueue(places, 1, asked.send)
    call = ask(waiting, "a")
    await asyncio.sleep(0.05)
    assert asked.requests == []
    places.elsewhere = False
    places.leave()
    assert (await call)[0].text == "a"
    await eventually(lambda: places.wishes[-1] is False)
    assert places.wishes[0] is True
    waits = ask(waiting, "b")
    await waits
    await waiting.close()


async def test_those_that_are_asked_apart_come_before_other_callers() -> None:
    async def asked_by(caller: str, name: str, subject: str | None) -> Answered:
        set_current_caller(caller)
        return await waiting.ask(question(name), subject, None, Timing())

    asked = Asked(most=2, apart=True)
    waiting = queue(asked)
    calls = [asyncio.create_task(asked_by("one", name, "s")) for name in "ab"]
    await eventually(lambda: asked.requests == [["a", "b"]])
    calls += [asyncio.create_task(asked_by("other", name, None)) for name in "cd"]
    await asyncio.sleep(0)
    asked.gate.set()
    await asyncio.gather(*calls)
    assert asked.requests == [["a", "b"], ["a"], ["c"], ["b"], ["d"]]
