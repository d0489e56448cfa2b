"""Each wrapper alone around a judge: what it adds, and that it is a judge itself."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from tests.server.judges.bench import choose, generate
from tests.support.judges.scripted import ScriptedJudge, ScriptedJudges

from gradewire_server.domain.needs import AnswerSource
from gradewire_server.domain.result import Failure, Status
from gradewire_server.judges.backend import Judge
from gradewire_server.judges.verdicts.cache import VerdictCache
from gradewire_server.judges.verdicts.cached import MemoryCachedJudge, StoreCachedJudge
from gradewire_server.judges.verdicts.checked import CheckedJudge
from gradewire_server.judges.verdicts.queue_limit import QueueLimit
from gradewire_server.judges.verdicts.single_flight import SingleFlightJudge
from gradewire_server.storage.lru import SegmentedLru
from gradewire_server.storage.telemetry import StorageTelemetry


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
        MemoryCachedJudge(judge, verdicts),
        StoreCachedJudge(judge, verdicts),
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


async def test_memory_answers_what_the_store_behind_it_kept(judge: ScriptedJudge, verdicts: VerdictCache) -> None:
    memory = MemoryCachedJudge(judge, verdicts)
    assert [(await memory.choose(choose())).source for _ in range(2)] == [AnswerSource.COMPUTED] * 2  # it keeps nothing
    memory = MemoryCachedJudge(StoreCachedJudge(judge, verdicts), verdicts)
    assert [(await memory.choose(choose())).source for _ in range(2)] == [AnswerSource.COMPUTED, AnswerSource.MEMORY]
    assert len(judge.script.asked) == 3


async def test_what_was_read_in_another_way_than_its_name_says_is_not_kept(
    judge: ScriptedJudge, verdicts: VerdictCache
) -> None:
    memory = MemoryCachedJudge(StoreCachedJudge(judge, verdicts), verdicts)
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
