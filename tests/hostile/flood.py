"""Calls of one cold item each on a schedule, each of whose replies is compared with what was asked."""

import asyncio
from collections.abc import Sequence
from typing import Any, Final

import grpc
from benchmarks.load.frames import Ended, FramedConnection
from benchmarks.load.generator import Generator, Tally, Texts
from typing_extensions import override

from gradewire_proto.v1 import scoring_pb2, scoring_pb2_grpc, types_pb2

_COMPARED: Final = 500
"""Scores of a flood that are asked for once more."""


class NumberedTexts(Texts):
    """Requests whose item has its number as its id, and is known by it."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.items: list[types_pb2.Item] = []
        self._seed = seed

    @override
    def next(self) -> bytes:
        request = scoring_pb2.ScoreRequest.FromString(super().next())
        request.items[0].id = str(len(self.items))
        request.items[0].prediction += f" of {self._seed}"  # two floods have no text in common
        self.items.append(request.items[0])
        return request.SerializeToString()


class CheckedGenerator(Generator):
    """Keeps the score of every item, and counts the replies that were about another one.

    Attributes:
        scores: By the item's number.
        foreign: Replies to a call that were about another call's item.
    """

    def __init__(self, connections: Sequence[FramedConnection], seed: int = 0) -> None:
        super().__init__(connections)
        self._texts: NumberedTexts = NumberedTexts(seed)
        self.scores: dict[int, float] = {}
        self.foreign = 0

    @override
    def send(self, tally: Tally, due_s: float) -> asyncio.Future[Ended]:
        answer = super().send(tally, due_s)
        number = len(self._texts.items) - 1
        answer.add_done_callback(lambda done: self._compare(number, done.result()))
        return answer

    def _compare(self, number: int, ended: Ended) -> None:
        if ended.code != "OK":
            return
        (item,) = scoring_pb2.ScoreResponse.FromString(ended.data).items
        self.foreign += item.id != str(number)
        if item.results[0].status == types_pb2.STATUS_OK:
            self.scores[number] = item.results[0].score

    async def wrong(self, address: str) -> int:
        """How many of the newest scores differ by more than 2e-4 from what the item gets among others, quietly."""
        newest = sorted(self.scores)[-_COMPARED:]
        items = [self._texts.items[number] for number in newest]
        found = await scored(address, items)
        return sum(abs(self.scores[number] - score) > 2e-4 for number, score in zip(newest, found, strict=True))


async def scored(address: str, items: Sequence[types_pb2.Item]) -> list[float]:
    """Scores of items by smile, in one call."""
    metric = types_pb2.MetricSpec(smile=types_pb2.SmileParameters())
    async with grpc.aio.insecure_channel(address) as channel:
        stub: Any = scoring_pb2_grpc.ScoringStub(channel)
        reply = await stub.Score(scoring_pb2.ScoreRequest(items=items, metrics=[metric]), timeout=60)
    assert all(item.results[0].status == types_pb2.STATUS_OK for item in reply.items)
    return [item.results[0].score for item in reply.items]
