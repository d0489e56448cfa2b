"""Server processes and the judge host over a real socket: here two clients of one host, with scripted judges."""

import asyncio
import time
from dataclasses import replace
from typing import Any

import pytest
from tests.server.judges.scripted_service import choose, generate
from tests.server.judges.served_host import ServedHost, gate_of, until
from tests.support.judges.scripted import Script, ScriptedJudges, by_hash, judge_status

from gradewire_proto.tracing.spans import CURRENT
from gradewire_server.domain.caller import current_caller, set_current_caller
from gradewire_server.domain.items import Failure, Status
from gradewire_server.domain.judge import Choice, Choose
from gradewire_server.domain.needs import AnswerSource
from gradewire_server.judges.backend import JudgeUnavailableError
from gradewire_server.tracing import TraceHeaders


async def test_each_process_gets_what_the_judge_says_and_none_loads_one(house: ServedHost) -> None:
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


async def test_the_namespace_and_the_caller_of_a_question_reach_the_judge(house: ServedHost) -> None:
    callers = []

    def noted(need: Choose) -> Choice:
        callers.append(current_caller())
        return by_hash(need)

    judges = ScriptedJudges("scripted", script=Script(on_choose=noted))
    await house.host(judges)
    judge = await house.process().open("scripted")

    async def ask(caller: str) -> None:
        set_current_caller(caller)
        await judge.choose(replace(choose(caller), namespace=f"namespace of {caller}"))

    for caller in ("blue", "red"):
        await asyncio.create_task(ask(caller))
    assert callers == ["blue", "red"]
    assert [need.namespace for need in judges.script.asked] == ["namespace of blue", "namespace of red"]


async def test_equal_questions_of_two_processes_are_computed_once(house: ServedHost) -> None:
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


async def test_a_caller_that_leaves_frees_the_queue_and_so_does_a_process_that_ends(house: ServedHost) -> None:
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


async def test_the_queue_is_bounded_over_all_processes(house: ServedHost) -> None:
    judges = ScriptedJudges("scripted")
    await house.host(judges, max_queue_items=2)
    opened = [await house.process().open("scripted") for _ in range(3)]
    gate = gate_of(judges)
    asking = [asyncio.create_task(judge.choose(choose(f"{n}"))) for n, judge in enumerate(opened[:2])]
    await until(lambda: judges.known["scripted"].running == 2)
    refused = (await opened[2].choose(choose("3"))).answer
    assert isinstance(refused, Failure)
    assert refused.status is Status.UNAVAILABLE
    assert "wait for the judge" in refused.message
    assert refused.retry_after_s
    gate.set_result(None)
    assert not any(isinstance(reply.answer, Failure) for reply in await asyncio.gather(*asking))


async def test_a_deadline_holds_in_the_host(house: ServedHost) -> None:
    judges = ScriptedJudges("scripted")
    await house.host(judges)
    judge = await house.process().open("scripted")
    gate_of(judges)
    late = (await judge.choose(choose(), deadline_s=time.monotonic() + 0.2)).answer
    assert isinstance(late, Failure)
    assert late.status is Status.TIMEOUT
    await until(lambda: judges.known["scripted"].cancelled == 1)


async def test_a_trouble_of_the_judge_is_told_to_all_and_so_is_what_is_loaded(house: ServedHost) -> None:
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


async def test_why_a_judge_cannot_be_opened_is_said_as_the_host_says_it(house: ServedHost) -> None:
    judges = ScriptedJudges("scripted")
    judges.failures["scripted"] = Failure(Status.MODEL_UNAVAILABLE, "its file is torn")
    await house.host(judges)
    with pytest.raises(JudgeUnavailableError, match="its file is torn"):
        await house.process().open("scripted")


async def test_a_judge_that_raises_fails_its_question_alone(house: ServedHost) -> None:
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


async def test_a_traced_question_is_traced_in_the_host_and_another_is_not(house: ServedHost) -> None:
    tracer = _Tracer()
    await house.host(ScriptedJudges("scripted"), tracer=tracer)
    judge = await house.process().open("scripted")
    await judge.choose(choose("untraced"))
    assert tracer.begun == []
    token = CURRENT.set(_Span())  # type: ignore[arg-type]
    await judge.choose(choose("traced"))
    CURRENT.reset(token)
    assert tracer.begun == [("gradewire.internal.JudgeHost/Ask", TraceHeaders("00-1-2-01", "a=b"))]
