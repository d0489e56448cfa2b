"""Bulk streams of cold items in a process of their own, all of whose results are kept and counted."""

import asyncio
import multiprocessing
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import grpc
from tests.hostile.flood import NumberedTexts

from gradewire_proto.v1 import scoring_pb2, scoring_pb2_grpc, types_pb2

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.sharedctypes import Synchronized
    from multiprocessing.synchronize import Event

_ITEMS: Final = 32
"""Items of a message."""
_AHEAD: Final = 512
"""Items of all streams that were sent and are not scored, or two messages of each where that is more."""
_JOIN_S: Final = 60.0


@dataclass
class Stream:
    """What became of one stream.

    Attributes:
        sent: Its items.
        scores: By the item's number.
        ends: Results by status, and the stream's own code.
    """

    sent: list[types_pb2.Item] = field(default_factory=list)
    scores: dict[int, float] = field(default_factory=dict)
    ends: Counter[str] = field(default_factory=Counter)


class Bulk:
    """Streams that run until `ended` is asked for.

    Attributes:
        streams: What became of each, once the block is left.
    """

    def __init__(self, scored: "Synchronized[int]") -> None:
        self._scored = scored
        self.streams: list[Stream] = []

    @property
    def scored(self) -> int:
        """Items so far, of all streams."""
        return self._scored.value


@contextmanager
def bulk(address: str, count: int) -> Iterator[Bulk]:
    """Runs `count` streams for the block; at its end each is closed and read to its last result."""
    context = multiprocessing.get_context("spawn")
    scored: Synchronized[int] = context.Value("q", 0)
    stop = context.Event()
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_run, args=(address, count, scored, stop, there), daemon=True)
    process.start()
    there.close()
    running = Bulk(scored)
    try:
        yield running
        stop.set()
        if not here.poll(_JOIN_S):
            raise TimeoutError(f"{count} streams were not read to their end in {_JOIN_S:g} s")
        running.streams = [
            Stream([types_pb2.Item.FromString(item) for item in sent], scores, ends)
            for sent, scores, ends in here.recv()
        ]
        process.join(_JOIN_S)
    finally:
        process.kill()
        process.join()
        here.close()


def _run(address: str, count: int, scored: "Synchronized[int]", stop: "Event", reports: "Connection") -> None:
    async def all_streams() -> list[Stream]:
        ahead = max(2, _AHEAD // _ITEMS // count)
        return await asyncio.gather(*(_stream(address, number, ahead, scored, stop) for number in range(count)))

    streams = asyncio.run(all_streams())
    reports.send([([item.SerializeToString() for item in each.sent], each.scores, each.ends) for each in streams])


async def _stream(address: str, number: int, ahead: int, scored: "Synchronized[int]", stop: "Event") -> Stream:
    """One stream, at most `ahead` messages of which wait for their results."""
    stream, texts = Stream(), NumberedTexts(seed=1000 + number)
    progress = asyncio.Event()

    async def requests() -> AsyncIterator[scoring_pb2.ScoreStreamRequest]:
        metric = types_pb2.MetricSpec(smile=types_pb2.SmileParameters())
        yield scoring_pb2.ScoreStreamRequest(config=scoring_pb2.ScoreStreamConfig(metrics=[metric]))
        while not stop.is_set():
            for _ in range(_ITEMS):
                texts.next()
            items = texts.items[len(stream.sent) :]
            while len(stream.sent) - len(stream.scores) > (ahead - 1) * _ITEMS:
                progress.clear()
                await progress.wait()
            stream.sent += items
            yield scoring_pb2.ScoreStreamRequest(items=scoring_pb2.ScoreStreamItems(items=items))

    async with grpc.aio.insecure_channel(address, options=[("grpc.use_local_subchannel_pool", 1)]) as channel:
        stub: Any = scoring_pb2_grpc.ScoringStub(channel)
        try:
            async for reply in stub.ScoreStream(requests()):
                for item in reply.items:
                    for result in item.results:
                        stream.ends[types_pb2.Status.Name(result.status)] += 1
                        stream.scores[int(item.id)] = result.score
                progress.set()
                with scored.get_lock():
                    scored.value += sum(item.complete for item in reply.items)
        except grpc.aio.AioRpcError as error:
            stream.ends[f"{error.code().name} {error.details()}"] += 1
    return stream
