"""Streams with a slow judge: embedding results leave at once, verdicts have time of their own, windows bound all."""

import asyncio
import time
from collections.abc import AsyncIterator

import pytest
from tests.support.engines.hash_engine import HashEngine
from tests.support.judges.scripted import saying
from tests.support.servers.handlers import handlers_over

from gradewire_proto.v1 import scoring_pb2, types_pb2
from gradewire_server.domain.items import Failure, Status
from gradewire_server.domain.judge import Choose
from gradewire_server.settings.limits import Deadlines, Limits

Request = scoring_pb2.ScoreStreamRequest
SMILE = types_pb2.MetricSpec(smile=types_pb2.SmileParameters())
LAVE = types_pb2.MetricSpec(lave=types_pb2.LaveParameters())
REASONS = types_pb2.MetricSpec(lave=types_pb2.LaveParameters(mode=types_pb2.LAVE_MODE_RATIONALE))


def item(number: int) -> types_pb2.Item:
    return types_pb2.Item(question="what is it?", references=["the cat"], prediction=f"a cat, {number} feet away")


async def sent(count: int, *metrics: types_pb2.MetricSpec) -> AsyncIterator[Request]:
    yield Request(config=scoring_pb2.ScoreStreamConfig(metrics=metrics))
    for start in range(0, count, 32):
        part = [item(number) for number in range(start, min(start + 32, count))]
        yield Request(items=scoring_pb2.ScoreStreamItems(items=part))


class Judging:
    """Handlers whose judge answers when it is let, and what came over a stream."""

    def __init__(self, *, window: int = 512, deadlines: Deadlines | None = None) -> None:
        self.engine = HashEngine()
        self.gate: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.engine.before = lambda model: asyncio.shield(self.gate) if model == "scripted" else None
        self.handlers = handlers_over(
            self.engine, limits=Limits(stream_window_items=window), deadlines=deadlines or Deadlines()
        )
        self.results: dict[tuple[int, int], types_pb2.MetricResult] = {}

    async def read(self, requests: AsyncIterator[Request], *, until: int = -1, deadline_s: float | None = None) -> None:
        """Reads all, letting the judge answer once `until` results are there."""
        async for reply in self.handlers.score_stream(requests, deadline_s=deadline_s):
            for part in reply.items:
                for result in part.results:
                    assert (part.index, result.metric_index) not in self.results
                    self.results[part.index, result.metric_index] = result
            if len(self.results) == until:
                self.engine.before = lambda _model: None
                self.gate.set_result(None)

    def of(self, metric_index: int) -> set[int]:
        """Items that have a result of a metric."""
        return {index for index, metric in self.results if metric == metric_index}


async def test_embedding_results_of_a_whole_window_come_while_the_judge_has_said_nothing() -> None:
    """Were one of them to wait for the judge, nobody would let it answer, and this would never end."""
    judging = Judging(window=100)
    async with asyncio.timeout(30):
        await judging.read(sent(96, LAVE, SMILE, REASONS), until=96)
    assert judging.of(0) == judging.of(1) == judging.of(2) == set(range(96))
    assert {result.status for result in judging.results.values()} == {types_pb2.STATUS_OK}


async def test_items_beyond_the_window_follow_as_the_judge_gets_on() -> None:
    judging = Judging(window=64)
    async with asyncio.timeout(30):
        await judging.read(sent(300, SMILE, LAVE), until=64)
    assert judging.of(0) == judging.of(1) == set(range(300))


async def test_verdicts_of_a_stream_have_a_deadline_of_their_own() -> None:
    judging = Judging(deadlines=Deadlines(default_s=60, judge_s=1000))
    judging.gate.set_result(None)
    began_s = time.monotonic()
    await judging.read(sent(3, SMILE, LAVE))
    given = [deadline_s - began_s for deadline_s in judging.engine.judge_deadlines_s if deadline_s is not None]
    assert len(given) == 3
    assert all(1000 <= left_s < 1060 for left_s in given)


async def test_and_never_more_than_the_stream_itself() -> None:
    judging = Judging()
    judging.gate.set_result(None)
    began_s = time.monotonic()
    await judging.read(sent(2, LAVE), deadline_s=90)
    assert all(deadline_s is not None and deadline_s <= began_s + 91 for deadline_s in judging.engine.judge_deadlines_s)


async def test_a_unary_call_is_answered_in_time_with_what_there_is() -> None:
    judging = Judging()
    request = scoring_pb2.ScoreRequest(items=[item(0)], metrics=[SMILE, LAVE])
    reply = await judging.handlers.score(request, deadline_s=0.5)
    smile, lave = reply.items[0].results
    assert (smile.status, lave.status) == (types_pb2.STATUS_OK, types_pb2.STATUS_TIMEOUT)


async def test_a_judge_that_is_away_leaves_a_hint_and_the_other_scores() -> None:
    judging = Judging()
    judging.gate.set_result(None)
    judging.engine.script.failure = Failure(Status.UNAVAILABLE, "the worker died", retry_after_s=2.5)
    await judging.read(sent(2, SMILE, LAVE))
    assert [judging.results[index, 0].status for index in range(2)] == [types_pb2.STATUS_OK] * 2
    for index in range(2):
        lave = judging.results[index, 1]
        assert (lave.status, lave.retry_after_s) == (types_pb2.STATUS_UNAVAILABLE, 2.5)
        assert not lave.HasField("score")


async def test_a_caller_that_leaves_takes_its_questions_along() -> None:
    judging = Judging()
    reading = asyncio.create_task(judging.read(sent(10, LAVE)))
    while judging.engine.running < 10:  # noqa: ASYNC110 - nothing tells when they are all asked
        await asyncio.sleep(0.001)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert judging.engine.running == 0


async def test_long_reasons_are_sent_in_messages_of_bearable_size() -> None:
    judging = Judging()
    judging.gate.set_result(None)
    judging.engine.script.on_generate = saying("because " + "x" * 40_000)
    sizes = []
    async for reply in judging.handlers.score_stream(sent(96, REASONS)):
        sizes.append(reply.ByteSize())
        for part in reply.items:
            (judging.results[part.index, 0],) = part.results
    assert len(judging.results) == 96
    assert max(sizes) < 2 << 20
    assert any(isinstance(need, Choose) for need in judging.engine.script.asked)
