"""Server processes and the judge host over a real socket: here two clients of one host, with scripted judges."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.server.judges.bench import choose, generate
from tests.support.judges.scripted import Script, ScriptedJudges, by_hash, judge_status

from gradewire_proto.conventions.spans import CURRENT
from gradewire_server.domain.caller import ask_for, asking
from gradewire_server.domain.judge import Choice, Choose
from gradewire_server.domain.needs import AnswerSource
from gradewire_server.domain.ports import REPLACED
from gradewire_server.domain.result import Failure, Status
from gradewire_server.judges.backend import JudgeUnavailableError
from gradewire_server.judges.shared.backend import SharedJudge, SharedJudges
from gradewire_server.judges.shared.host import JudgeHost
from gradewire_server.tracing.port import TraceHeaders

_WAIT_S = 20.0


class House:
    """One host at a time, and server processes that reach it."""

    def __init__(self, directory: Path) -> None:
        self._address = f"unix:{directory / 'judges'}"
        self._closing: list[Callable[[], Any]] = []

    async def host(self, judges: ScriptedJudges, **options: Any) -> JudgeHost:
        host = JudgeHost(judges, **{"max_queue_items": 64, **options})
        await host.start(self._address)
        self._closing.append(host.stop)
        return host

    def process(self, **options: Any) -> SharedJudges:
        process = SharedJudges(self._address, ScriptedJudges("scripted"), **options)
        self._closing.append(process.close)
        return process

    async def close(self) -> None:
        for close in reversed(self._closing):
            await close()


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    house = House(tmp_path)
    yield house
    await house.close()


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(_WAIT_S):
        while not holds():  # noqa: ASYNC110 - it happens in another task's own time
            await asyncio.sleep(0.01)


def gate_of(judges: ScriptedJudges) -> asyncio.Future[None]:
    """Holds what its judge is asked until it is set."""
    gate: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    judges.known["scripted"].gate = lambda: asyncio.shield(gate)  # type: ignore[assignment,return-value]
    return gate


async def test_each_process_gets_what_the_judge_says_and_none_loads_one(house: House) -> None:
    judges = ScriptedJudges("scripted")
    await house.host(judges)
    first, second = [await house.process().open("scripted") for _ in range(2)]
    for judge in (first, second):
        assert judge.status == judges.known["scripted"].status
        assert (await judge.choose(choose("a dog"))).answer == by_hash(choose("a dog"))
        written = await judge.generate(generate("a dog", max_tokens=2))
        assert written.answer.text == "It says"  # type: ignore[union-attr]
        assert written.timing.inference_s == 2.0
    assert judges.opened == ["scripted"]
    assert {need.model for need in judges.script.asked} == {f"scripted@{first.status.digest}"}


async def test_the_namespace_and_the_caller_of_a_question_reach_the_judge(house: House) -> None:
    callers = []

    def noted(need: Choose) -> Choice:
        callers.append(asking())
        return by_hash(need)

    judges = ScriptedJudges("scripted", script=Script(on_choose=noted))
    await house.host(judges)
    judge = await house.process().open("scripted")

    async def ask(caller: str) -> None:
        ask_for(caller)
        await judge.choose(replace(choose(caller), namespace=f"namespace of {caller}"))

    for caller in ("blue", "red"):
        await asyncio.create_task(ask(caller))
    assert callers == ["blue", "red"]
    assert [need.namespace for need in judges.script.asked] == ["namespace of blue", "namespace of red"]


async def test_equal_questions_of_two_processes_are_computed_once(house: House) -> None:
    judges = ScriptedJudges("scripted")
    await house.host(judges)
    opened = [await house.process().open("scripted") for _ in range(2)]
    gate = gate_of(judges)
    asking = [asyncio.create_task(judge.choose(choose())) for judge in opened]
    await until(lambda: judges.known["scripted"].running == 1)
    await asyncio.sleep(0.1)
    gate.set_result(None)
    replies = await asyncio.gather(*asking)
    assert len(judges.script.asked) == 1
    assert {reply.source for reply in replies} == {AnswerSource.COMPUTED, AnswerSource.JOINED}
    assert replies[0].answer == replies[1].answer


async def test_a_caller_that_leaves_frees_the_queue_and_so_does_a_process_that_ends(house: House) -> None:
    judges = ScriptedJudges("scripted")
    await house.host(judges)
    staying, leaving = house.process(), house.process()
    gate_of(judges)
    asking = asyncio.create_task((await staying.open("scripted")).choose(choose("one")))
    other = asyncio.create_task((await leaving.open("scripted")).choose(choose("two")))
    held = judges.known["scripted"]
    await until(lambda: held.running == 2)
    asking.cancel()
    await until(lambda: (held.running, held.cancelled) == (1, 1))
    await leaving.close()
    await until(lambda: (held.running, held.cancelled) == (0, 2))
    reply = await other
    assert isinstance(reply.answer, Failure)
    assert reply.answer.status is Status.UNAVAILABLE
    with pytest.raises(asyncio.CancelledError):
        await asking


async def test_the_queue_is_bounded_over_all_processes(house: House) -> None:
    judges = ScriptedJudges("scripted")
    await house.host(judges, max_queue_items=2)
    opened = [await house.process().open("scripted") for _ in range(3)]
    gate = gate_of(judges)
    asking = [asyncio.create_task(judge.choose(choose(f"{n}"))) for n, judge in enumerate(opened[:2])]
    await until(lambda: judges.known["scripted"].running == 2)
    refused = (await opened[2].choose(choose("3"))).answer
    assert isinstance(refused, Failure)
    assert refused.status is Status.UNAVAILABLE
    assert "judge_max_queue_items" in refused.message
    assert refused.retry_after_s
    gate.set_result(None)
    assert not any(isinstance(reply.answer, Failure) for reply in await asyncio.gather(*asking))


async def test_a_deadline_holds_in_the_host(house: House) -> None:
    judges = ScriptedJudges("scripted")
    await house.host(judges)
    judge = await house.process().open("scripted")
    gate_of(judges)
    late = (await judge.choose(choose(), deadline_s=time.monotonic() + 0.2)).answer
    assert isinstance(late, Failure)
    assert late.status is Status.TIMEOUT
    await until(lambda: judges.known["scripted"].cancelled == 1)


async def test_what_a_host_that_stops_has_not_answered_the_next_one_does(house: House) -> None:
    before, after = ScriptedJudges("scripted"), ScriptedJudges("scripted")
    host = await house.host(before)
    process = house.process()
    judge = await process.open("scripted")
    gate_of(before)
    asking = asyncio.create_task(judge.choose(choose()))
    await until(lambda: before.known["scripted"].running == 1)
    await host.stop()
    assert before.known["scripted"].closed
    await until(lambda: bool(judge.trouble()))
    waiting = asyncio.create_task(judge.choose(choose("later")))
    await house.host(after)
    assert (await asking).answer == by_hash(choose())
    assert (await waiting).answer == by_hash(choose("later"))
    assert judge.trouble() == ""
    assert after.opened == ["scripted"]


async def test_another_judge_of_the_name_answers_for_itself_alone(house: House) -> None:
    before, after = ScriptedJudges("scripted"), ScriptedJudges("scripted")
    after.known["scripted"]._status = judge_status("scripted", digest="f" * 64)
    host = await house.host(before)
    judge = await house.process().open("scripted")
    old = SharedJudge(judge.status, judge._host)
    await host.stop()
    await house.host(after)
    await until(lambda: judge.status.digest == "f" * 64)
    assert (await old.choose(choose())).answer == REPLACED
    assert (await judge.choose(choose())).answer == by_hash(choose())


async def test_a_trouble_of_the_judge_is_told_to_all_and_so_is_what_is_loaded(house: House) -> None:
    judges = ScriptedJudges("scripted")
    judges.known["scripted"]._status = judge_status("scripted", state="loaded")
    await house.host(judges)
    opener, other = house.process(), house.process()
    other._files.known["scripted"]._status = judge_status("scripted", state="built")  # type: ignore[attr-defined]
    judge = await opener.open("scripted")
    await until(lambda: [each.state for each in other.listed()] == ["loaded"])
    judges.known["scripted"].why = "its worker ended"
    await until(lambda: judge.trouble() == "its worker ended")
    judges.known["scripted"].why = ""
    await until(lambda: judge.trouble() == "")


async def test_why_a_judge_cannot_be_opened_is_said_as_the_host_says_it(house: House) -> None:
    judges = ScriptedJudges("scripted")
    judges.failures["scripted"] = Failure(Status.MODEL_UNAVAILABLE, "its file is torn")
    await house.host(judges)
    with pytest.raises(JudgeUnavailableError, match="its file is torn"):
        await house.process().open("scripted")


async def test_without_a_host_a_question_waits_and_is_then_told_so(house: House) -> None:
    process = house.process(away_s=0.2)
    with pytest.raises(JudgeUnavailableError, match="is not there; another one is being started"):
        await process.open("scripted")
    process = house.process()
    opening = asyncio.create_task(process.open("scripted"))
    await asyncio.sleep(0.05)
    await house.host(ScriptedJudges("scripted"))
    judge = await opening
    assert (await judge.choose(choose())).answer == by_hash(choose())


async def test_a_judge_that_raises_fails_its_question_alone(house: House) -> None:
    def raises(_: object) -> Any:
        raise ZeroDivisionError

    await house.host(ScriptedJudges("scripted", script=Script(on_choose=raises)))
    judge = await house.process().open("scripted")
    failed = (await judge.choose(choose())).answer
    assert isinstance(failed, Failure)
    assert failed.status is Status.INTERNAL
    assert (await judge.generate(generate())).answer.text == "It says the same."  # type: ignore[union-attr]


class _Span:
    """What a traced question carries."""

    def metadata(self) -> tuple[tuple[str, str], ...]:
        return (("traceparent", "00-1-2-01"), ("tracestate", "a=b"))


class _Tracer:
    """Notes what it is told."""

    def __init__(self) -> None:
        self.begun: list[tuple[str, TraceHeaders]] = []

    def begin(self, method: str, headers: TraceHeaders) -> None:
        self.begun.append((method, headers))


async def test_a_traced_question_is_traced_in_the_host_and_another_is_not(house: House) -> None:
    tracer = _Tracer()
    await house.host(ScriptedJudges("scripted"), tracer=tracer)
    judge = await house.process().open("scripted")
    await judge.choose(choose("untraced"))
    assert tracer.begun == []
    token = CURRENT.set(_Span())  # type: ignore[arg-type]
    await judge.choose(choose("traced"))
    CURRENT.reset(token)
    assert tracer.begun == [("gradewire.internal.JudgeHost/Ask", TraceHeaders("00-1-2-01", "a=b"))]
