"""Callers that send and do not read: their calls end after a while, and nobody else is kept waiting."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import grpc
import pytest
from grpc import aio
from tests.support.servers.wire import EXACT, SMILE, Wire, error_of, item, request, until, wire_server

from gradewire_proto.v1 import references_pb2, references_pb2_grpc, scoring_pb2, scoring_pb2_grpc, types_pb2
from gradewire_server.settings.limits import Capacity, Deadlines, Limits

_NARROW = (
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.http2.bdp_probe", 0),
)
"""A caller that takes no more from the network than it is asked for."""


@asynccontextmanager
async def narrow(wire: Wire) -> AsyncIterator[aio.Channel]:
    async with aio.insecure_channel(f"127.0.0.1:{wire.port}", options=_NARROW) as channel:
        yield channel


def many_failures() -> references_pb2.PrepareRequest:
    """Entries without references: progress is large, since it tells of each failure."""
    bad = [references_pb2.ReferenceEntry(question="q", references=["x"] * 3) for _ in range(4000)]
    good = [references_pb2.ReferenceEntry(question=f"q{n}", references=["the cat"]) for n in range(96)]
    return references_pb2.PrepareRequest(entries=[*bad, *good], metrics=[SMILE])


def bulky_stream(messages: int) -> Iterator[scoring_pb2.ScoreStreamRequest]:
    yield scoring_pb2.ScoreStreamRequest(config=scoring_pb2.ScoreStreamConfig(metrics=[EXACT]))
    long_id = "i" * 2000
    for _ in range(messages):
        bulky = [item(item_id=long_id) for _ in range(100)]
        yield scoring_pb2.ScoreStreamRequest(items=scoring_pb2.ScoreStreamItems(items=bulky))


async def stalled_stream(channel: aio.Channel, messages: int) -> tuple[aio.StreamStreamCall, "asyncio.Task[None]"]:
    call = scoring_pb2_grpc.ScoringStub(channel).ScoreStream()

    async def write() -> None:
        for message in bulky_stream(messages):
            await call.write(message)

    return call, asyncio.create_task(write())


def code_count(wire: Wire, method: str, code: str) -> float | None:
    labels = {"method": f"gradewire.v1.{method}", "code": code}
    return wire.registry.get_sample_value("gradewire_calls_total", labels)


async def test_a_prepare_that_nobody_reads_holds_no_item_permits_and_is_ended() -> None:
    async with (
        wire_server(
            limits=Limits(max_references_per_item=2), capacity=Capacity(max_items=100), deadlines=Deadlines(stall_s=0.5)
        ) as wire,
        narrow(wire) as channel,
    ):
        call = references_pb2_grpc.ReferencesStub(channel).Prepare(many_failures())
        await until(lambda: wire.engine.calls)
        await until(lambda: wire.handlers.context.admission.items.taken == 0)
        reply = await wire.scoring.Score(request(*[item()] * 90))
        assert len(reply.items) == 90
        await until(lambda: code_count(wire, "References/Prepare", "DEADLINE_EXCEEDED") == 1, timeout_s=10)
        assert wire.handlers.context.admission.bytes.taken == 0
        with pytest.raises(aio.AioRpcError) as caught:
            async for _ in call:
                pass
        code, details, _ = error_of(caught)
        assert code is grpc.StatusCode.DEADLINE_EXCEEDED
        assert "read no reply for 0.5 s" in details


async def test_a_prepare_takes_permits_of_a_chunk_at_a_time(wire: Wire) -> None:
    gate: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    wire.engine.before = lambda _model: asyncio.shield(gate)
    entries = [references_pb2.ReferenceEntry(question=f"q{n}", references=["the cat"]) for n in range(150)]
    call = wire.references.Prepare(references_pb2.PrepareRequest(entries=entries, metrics=[SMILE]))
    await until(lambda: wire.engine.running)
    assert wire.handlers.context.admission.items.taken == 64
    gate.set_result(None)
    assert [step.entries_done async for step in call] == [64, 128, 150, 150]
    assert wire.handlers.context.admission.items.taken == 0


async def test_streams_that_nobody_reads_leave_room_for_others_and_are_ended() -> None:
    async with (
        wire_server(
            limits=Limits(stream_window_items=1000),
            capacity=Capacity(max_bytes=300_000),
            deadlines=Deadlines(stall_s=1.0),
        ) as wire,
        narrow(wire) as channel,
    ):
        stalled = [await stalled_stream(channel, 20) for _ in range(3)]
        arrived = "gradewire_request_message_bytes_count", {"method": "gradewire.v1.Scoring/ScoreStream"}
        await until(lambda: (wire.registry.get_sample_value(*arrived) or 0) >= 3 * 3)
        await until(lambda: wire.handlers.context.admission.bytes.taken == 0)
        large = types_pb2.Item(references=["the cat"], prediction="a cat", caption="x" * 250_000)
        assert len((await wire.scoring.Score(request(large))).items) == 1
        healthy = [reply async for reply in wire.scoring.ScoreStream(bulky_stream(3))]
        assert sum(part.complete for reply in healthy for part in reply.items) == 300
        await until(lambda: code_count(wire, "Scoring/ScoreStream", "DEADLINE_EXCEEDED") == 3, timeout_s=10)
        assert wire.handlers.context.admission.items.taken == 0
        for call, writing in stalled:
            writing.cancel()
            call.cancel()
        await asyncio.gather(*(writing for _, writing in stalled), return_exceptions=True)
