"""How much may wait, and when those who are turned away may come back."""

import asyncio
import time
from dataclasses import replace
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from tests.server.judges.scripted_service import ScriptedService, choose, generate, held
from tests.support.judges.scripted import ScriptedJudge, ScriptedJudges, preferring

from gradewire_server.domain.items import Failure, Status, Timing
from gradewire_server.domain.judge import Choice, Choose
from gradewire_server.domain.needs import AnswerSource
from gradewire_server.domain.ports import JudgeReply
from gradewire_server.judges import wrappers
from gradewire_server.judges.backend import Judge
from gradewire_server.judges.verdict_cache import VerdictCache
from gradewire_server.judges.wrappers import CachedJudge, CheckedJudge, QueueLimit, SingleFlightJudge
from gradewire_server.storage.cache import SegmentedLru, StorageTelemetry


def test_it_refuses_what_is_too_much_until_something_leaves() -> None:
    limit = QueueLimit(2)
    assert [limit.enter() is None for _ in range(3)] == [True, True, False]
    assert limit.waiting == 2
    limit.leave()
    assert limit.enter() is None


def test_the_hint_is_half_the_queue_at_the_pace_of_the_last_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    limit = QueueLimit(2)
    assert limit.full(8).retry_after_s == 1.0  # nothing is known of the pace
    for now_s in (10.0, 13.0, 16.0):
        monkeypatch.setattr(wrappers.time, "monotonic", lambda now_s=now_s: now_s)
        limit.finished()
    assert [limit.full(waiting).retry_after_s for waiting in (0, 8, 1000)] == [1.0, 12.0, 60.0]
    assert "8 items" in limit.full(8).message
    assert "wait for the judge" in limit.full(8).message


def test_once_closed_it_refuses_everything_and_sends_callers_elsewhere() -> None:
    limit = QueueLimit(2)
    limit.close()
    refusal = limit.enter()
    assert isinstance(refusal, Failure)
    assert refusal.status is Status.UNAVAILABLE
    assert "another replica" in refusal.message
    assert limit.waiting == 0


async def test_equal_needs_at_the_same_time_are_asked_once(bench: ScriptedService) -> None:
    await bench.service._library.get("")
    there, gate = held(bench.source.known["scripted"], 1)
    tasks = [asyncio.create_task(bench.service.choose(choose())) for _ in range(10)]
    await there.wait()
    gate.set_result(None)
    replies = await asyncio.gather(*tasks)
    assert len(bench.source.script.asked) == 1
    assert len({reply.answer for reply in replies}) == 1
    assert sorted(reply.source for reply in replies) == [AnswerSource.JOINED] * 9 + [AnswerSource.COMPUTED]


async def test_one_who_leaves_takes_nothing_from_those_who_stay(bench: ScriptedService) -> None:
    judge = bench.source.known["scripted"]
    there, gate = held(judge, 1)
    first, second = (asyncio.create_task(bench.service.choose(choose())) for _ in range(2))
    await there.wait()
    first.cancel()
    await asyncio.wait((first,))
    gate.set_result(None)
    assert isinstance((await second).answer, Choice)
    assert judge.cancelled == 0


async def test_the_last_one_who_leaves_ends_the_work(bench: ScriptedService) -> None:
    judge = bench.source.known["scripted"]
    there, gate = held(judge, 1)
    tasks = [asyncio.create_task(bench.service.choose(choose())) for _ in range(3)]
    await there.wait()
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    while judge.running:  # noqa: ASYNC110 - the work is cancelled beside its callers
        await asyncio.sleep(0)
    assert judge.cancelled == 1
    gate.set_result(None)
    judge.gate = lambda: None
    assert (await bench.service.choose(choose())).source is AnswerSource.COMPUTED  # nothing half done was kept


async def test_who_asks_the_same_while_left_work_ends_is_not_turned_away() -> None:
    judge = ScriptedJudges("scripted").known["scripted"]
    single = SingleFlightJudge(judge, QueueLimit(1))
    begun, ending, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()
    said = JudgeReply(Choice((0.5, 0.5), 0.9, 1), AnswerSource.COMPUTED, Timing())

    async def slow_to_end(need: Choose, *, deadline_s: float | None = None) -> JudgeReply[Choice]:
        del need, deadline_s
        begun.set()
        try:
            return await asyncio.Future()
        finally:
            ending.set()
            await ended.wait()

    async def quick(need: Choose, *, deadline_s: float | None = None) -> JudgeReply[Choice]:
        del need, deadline_s
        return said

    judge.choose = slow_to_end  # type: ignore[method-assign]
    first = asyncio.create_task(single.choose(choose()))
    await begun.wait()
    first.cancel()
    await ending.wait()
    judge.choose = quick  # type: ignore[method-assign]
    second = asyncio.create_task(single.choose(choose()))
    await asyncio.wait((first,))
    ended.set()
    assert await second == said


async def test_a_deadline_ends_the_wait_and_not_the_work_of_those_with_more_time(bench: ScriptedService) -> None:
    judge = bench.source.known["scripted"]
    _, gate = held(judge, 1)
    patient = asyncio.create_task(bench.service.choose(choose(), deadline_s=time.monotonic() + 60))
    late = await bench.service.choose(choose(), deadline_s=time.monotonic() + 0.02)
    assert isinstance(late.answer, Failure)
    assert late.answer.status is Status.TIMEOUT
    gate.set_result(None)
    assert isinstance((await patient).answer, Choice)
    assert bench.count("failures_total", status="timeout") == 1


async def test_who_comes_later_with_more_time_gets_it(bench: ScriptedService) -> None:
    """The judge itself heeds the deadline of the first; work is begun anew for the second."""
    judge = bench.source.known["scripted"]
    asked: list[float | None] = []

    async def answer_by_then(need: Choose, *, deadline_s: float | None) -> Any:
        asked.append(deadline_s)
        if deadline_s is not None and deadline_s < 1e9:
            await asyncio.wait((first,))
            return JudgeReply(Failure(Status.TIMEOUT, "too late"), AnswerSource.COMPUTED, Timing())
        return JudgeReply(preferring("yes")(need), AnswerSource.COMPUTED, Timing())

    await bench.service._library.get("")
    judge.answer = answer_by_then
    soon = time.monotonic() + 0.01
    first = asyncio.create_task(bench.service.choose(choose(), deadline_s=soon))
    await asyncio.sleep(0)
    second = asyncio.create_task(bench.service.choose(choose(), deadline_s=2e9))
    assert isinstance((await second).answer, Choice)
    assert isinstance((await first).answer, Failure)
    assert asked == [soon, 2e9]


async def test_a_full_queue_says_when_to_come_back(bench: ScriptedService) -> None:
    there, gate = held(bench.source.known["scripted"], 3)
    tasks = [asyncio.create_task(bench.service.choose(choose(f"answer {i}"))) for i in range(3)]
    await there.wait()
    assert bench.count("queue_items") == 3
    refused = (await bench.service.choose(choose("one more"))).answer
    joined = asyncio.create_task(bench.service.choose(choose("answer 0")))  # needs no room
    assert isinstance(refused, Failure)
    assert refused.status is Status.UNAVAILABLE
    assert refused.retry_after_s is not None
    assert 1 <= refused.retry_after_s <= 60
    gate.set_result(None)
    assert all(isinstance(reply.answer, Choice) for reply in await asyncio.gather(*tasks, joined))
    assert isinstance((await bench.service.choose(choose("one more"))).answer, Choice)  # a refusal is not remembered


@pytest.fixture
def judge() -> ScriptedJudge:
    return ScriptedJudges("scripted").known["scripted"]


@pytest.fixture
def verdicts() -> VerdictCache:
    telemetry = StorageTelemetry(CollectorRegistry())
    return VerdictCache(SegmentedLru(1 << 20), None, telemetry, namespace="n", max_pending_writes=8)


def around(judge: Judge, verdicts: VerdictCache) -> list[Judge]:
    """Each kind of wrapper."""
    return [
        CheckedJudge(judge),
        CachedJudge(judge, QueueLimit(1), verdicts),
        SingleFlightJudge(judge, QueueLimit(1)),
    ]


async def test_every_wrapper_is_a_judge(judge: ScriptedJudge, verdicts: VerdictCache) -> None:
    wrapped = around(judge, verdicts)
    judge.why = "its worker is being started again"
    asked = [await judge.choose(choose()), await judge.generate(generate())]
    for each in wrapped:
        assert each.status == judge.status
        assert each.trouble() == judge.why
        answers = [await each.choose(choose()), await each.generate(generate())]
        assert [reply.answer for reply in answers] == [reply.answer for reply in asked]
    await wrapped[-1].close()
    assert judge.closed


async def test_memory_answers_what_was_asked_before(judge: ScriptedJudge, verdicts: VerdictCache) -> None:
    memory = CachedJudge(judge, QueueLimit(1), verdicts)
    assert [(await memory.choose(choose())).source for _ in range(2)] == [AnswerSource.COMPUTED, AnswerSource.MEMORY]
    assert len(judge.script.asked) == 1


async def test_equal_needs_of_two_tenants_are_asked_apart(judge: ScriptedJudge, verdicts: VerdictCache) -> None:
    cached = CachedJudge(judge, QueueLimit(4), verdicts)
    needs = [replace(choose(), namespace=namespace) for namespace in ("", "one", "two", "two")]
    replies = await asyncio.gather(*(cached.choose(need) for need in needs))
    assert [reply.source for reply in replies] == [AnswerSource.COMPUTED] * 3 + [AnswerSource.JOINED]
    assert len(judge.script.asked) == 3


async def test_what_was_read_in_another_way_than_its_name_says_is_not_kept(
    judge: ScriptedJudge, verdicts: VerdictCache
) -> None:
    memory = CachedJudge(judge, QueueLimit(1), verdicts)
    before = judge.status
    opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    judge.gate = lambda: opened
    asking = asyncio.create_task(memory.choose(choose()))
    while not judge.running:  # noqa: ASYNC110 - nothing announces it
        await asyncio.sleep(0)
    judge._status = replace(before, precision="scripted without logprobs")
    opened.set_result(None)
    await asking
    assert (await memory.choose(choose())).source is AnswerSource.COMPUTED
    judge._status = before
    assert (await memory.choose(choose())).source is AnswerSource.COMPUTED


async def test_the_check_fails_one_need_and_lets_the_judges_own_failures_pass(judge: ScriptedJudge) -> None:
    checked = CheckedJudge(judge)

    def broken(need: Any) -> Any:
        raise RuntimeError(need)

    judge.script.on_choose = broken
    refused = (await checked.choose(choose())).answer
    assert isinstance(refused, Failure)
    assert refused.status is Status.INTERNAL
    away = judge.script.failure = Failure(Status.UNAVAILABLE, "the worker died", retry_after_s=2.0)
    assert (await checked.choose(choose())).answer == away


async def test_a_change_before_the_work_begins_counts_too(judge: ScriptedJudge, verdicts: VerdictCache) -> None:
    cached = CachedJudge(judge, QueueLimit(1), verdicts)
    before = judge.status
    asking = asyncio.create_task(cached.choose(choose()))
    await asyncio.sleep(0)  # the verdict's name is known, and the work is about to begin
    assert judge.script.asked == []
    judge._status = replace(before, precision="scripted without logprobs")
    await asking
    judge._status = before
    assert (await cached.choose(choose())).source is AnswerSource.COMPUTED
