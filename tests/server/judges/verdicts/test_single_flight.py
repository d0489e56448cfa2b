"""Equal needs are one piece of work, which ends with the last who waits for it; the queue is bounded."""

import asyncio
import time
from typing import Any

from tests.server.judges.bench import Bench, choose, held
from tests.support.judges.scripted import ScriptedJudges, preferring

from gradewire_server.domain.judge import Choice, Choose
from gradewire_server.domain.needs import AnswerSource
from gradewire_server.domain.ports import JudgeReply
from gradewire_server.domain.result import Failure, Status, Timing
from gradewire_server.judges.verdicts.queue_limit import QueueLimit
from gradewire_server.judges.verdicts.single_flight import SingleFlightJudge


async def test_equal_needs_at_the_same_time_are_asked_once(bench: Bench) -> None:
    await bench.service._library.get("")
    there, gate = held(bench.source.known["scripted"], 1)
    tasks = [asyncio.create_task(bench.service.choose(choose())) for _ in range(10)]
    await there.wait()
    gate.set_result(None)
    replies = await asyncio.gather(*tasks)
    assert len(bench.source.script.asked) == 1
    assert len({reply.answer for reply in replies}) == 1
    assert sorted(reply.source for reply in replies) == [AnswerSource.JOINED] * 9 + [AnswerSource.COMPUTED]


async def test_one_who_leaves_takes_nothing_from_those_who_stay(bench: Bench) -> None:
    judge = bench.source.known["scripted"]
    there, gate = held(judge, 1)
    first, second = (asyncio.create_task(bench.service.choose(choose())) for _ in range(2))
    await there.wait()
    first.cancel()
    await asyncio.wait((first,))
    gate.set_result(None)
    assert isinstance((await second).answer, Choice)
    assert judge.cancelled == 0


async def test_the_last_one_who_leaves_ends_the_work(bench: Bench) -> None:
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


async def test_a_deadline_ends_the_wait_and_not_the_work_of_those_with_more_time(bench: Bench) -> None:
    judge = bench.source.known["scripted"]
    _, gate = held(judge, 1)
    patient = asyncio.create_task(bench.service.choose(choose(), deadline_s=time.monotonic() + 60))
    late = await bench.service.choose(choose(), deadline_s=time.monotonic() + 0.02)
    assert isinstance(late.answer, Failure)
    assert late.answer.status is Status.TIMEOUT
    gate.set_result(None)
    assert isinstance((await patient).answer, Choice)
    assert bench.count("failures_total", status="timeout") == 1


async def test_who_comes_later_with_more_time_gets_it(bench: Bench) -> None:
    """The judge itself heeds the deadline of the first; work is begun anew for the second."""
    judge = bench.source.known["scripted"]
    asked: list[float | None] = []

    async def choose_by_then(need: Choose, *, deadline_s: float | None) -> Any:
        asked.append(deadline_s)
        if deadline_s is not None and deadline_s < 1e9:
            await asyncio.wait((first,))
            return JudgeReply(Failure(Status.TIMEOUT, "too late"), AnswerSource.COMPUTED, Timing())
        return JudgeReply(preferring("yes")(need), AnswerSource.COMPUTED, Timing())

    await bench.service._library.get("")
    judge.choose = choose_by_then
    soon = time.monotonic() + 0.01
    first = asyncio.create_task(bench.service.choose(choose(), deadline_s=soon))
    await asyncio.sleep(0)
    second = asyncio.create_task(bench.service.choose(choose(), deadline_s=2e9))
    assert isinstance((await second).answer, Choice)
    assert isinstance((await first).answer, Failure)
    assert asked == [soon, 2e9]


async def test_a_full_queue_says_when_to_come_back(bench: Bench) -> None:
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
