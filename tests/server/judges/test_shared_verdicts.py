"""A question that one process asks a judge is not asked by another, which waits for the answer."""

import asyncio
import os
import time

import pytest
from prometheus_client import CollectorRegistry
from tests.server.judges.scripted_service import choose, held
from tests.support.judges.scripted import ScriptedJudge, ScriptedJudges

from gradewire_server.domain.items import Failure, Status
from gradewire_server.domain.judge import Choice
from gradewire_server.domain.needs import AnswerSource
from gradewire_server.judges import verdict_cache
from gradewire_server.judges.verdict_cache import VerdictCache
from gradewire_server.judges.wrappers import CachedJudge, QueueLimit
from gradewire_server.storage.cache import StorageTelemetry
from gradewire_server.storage.shared_cache import SharedLru
from gradewire_server.storage.shared_table import MIN_BYTES, SharedTable, create_table

SHORTENED = Choice((0.5, 0.5), 1.0, 9, truncated=True)


class Process:
    """A process with a judge of its own."""

    def __init__(self, table: SharedTable) -> None:
        self.judge: ScriptedJudge = ScriptedJudges("scripted").known["scripted"]
        telemetry = StorageTelemetry(CollectorRegistry())
        verdicts = VerdictCache(
            SharedLru(1 << 20, table), None, telemetry, namespace="n", max_pending_writes=8, claims=table
        )
        self.cached = CachedJudge(self.judge, QueueLimit(8), verdicts)


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> tuple[Process, Process]:
    """Two processes. The second goes by the number of the first one's parent, which runs."""
    descriptor = create_table(MIN_BYTES, 2)
    here = Process(SharedTable(descriptor, 0))
    with monkeypatch.context() as patched:
        patched.setattr(os, "getpid", os.getppid)
        other = Process(SharedTable(descriptor, 1))
    os.close(descriptor)
    return here, other


async def test_a_question_under_way_is_asked_once_by_all_processes(two: tuple[Process, Process]) -> None:
    here, other = two
    there, gate = held(other.judge, 1)
    theirs = asyncio.create_task(other.cached.choose(choose()))
    await there.wait()
    ours = asyncio.create_task(here.cached.choose(choose()))
    await asyncio.sleep(0.05)
    assert not ours.done()
    gate.set_result(None)
    assert (await ours).answer == (await theirs).answer
    assert (await ours).source is AnswerSource.JOINED
    assert not here.judge.script.asked
    assert (await here.cached.choose(choose())).source is AnswerSource.MEMORY
    assert isinstance((await here.cached.choose(choose("another"))).answer, Choice)
    assert (await other.cached.choose(choose("another"))).source is AnswerSource.MEMORY


async def test_a_question_that_the_other_process_cannot_answer_is_asked_here(two: tuple[Process, Process]) -> None:
    here, other = two
    there, gate = held(other.judge, 1)
    other.judge.script.failure = Failure(Status.UNAVAILABLE, "the worker died")
    theirs = asyncio.create_task(other.cached.choose(choose()))
    await there.wait()
    ours = asyncio.create_task(here.cached.choose(choose()))
    await asyncio.sleep(0.01)
    gate.set_result(None)
    assert isinstance((await theirs).answer, Failure)
    async with asyncio.timeout(5):
        assert (await ours).source is AnswerSource.COMPUTED


async def test_a_wait_for_another_process_ends_with_the_process_and_with_the_deadline(
    monkeypatch: pytest.MonkeyPatch, two: tuple[Process, Process]
) -> None:
    here, other = two
    there, gate = held(other.judge, 2)
    theirs = [asyncio.create_task(other.cached.choose(choose(text))) for text in ("a", "b")]
    await there.wait()
    began_s = time.monotonic()
    await here.cached.choose(choose("a"), deadline_s=began_s + 0.1)
    assert 0.1 <= time.monotonic() - began_s < 5
    monkeypatch.setattr(verdict_cache, "is_running", lambda _: False)
    assert (await here.cached.choose(choose("b"))).source is AnswerSource.COMPUTED
    assert len(here.judge.script.asked) >= 1
    gate.set_result(None)
    await asyncio.gather(*theirs)


async def test_a_verdict_about_a_shortened_item_stays_in_its_process(two: tuple[Process, Process]) -> None:
    here, other = two
    other.judge.script.on_choose = lambda _: SHORTENED
    assert (await other.cached.choose(choose())).answer == SHORTENED
    assert (await other.cached.choose(choose())).source is AnswerSource.MEMORY
    assert (await here.cached.choose(choose())).source is AnswerSource.COMPUTED
