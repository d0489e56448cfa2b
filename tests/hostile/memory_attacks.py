"""Six ways to make a server hold more than it should. Each runs against one address and ends what it opened."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from typing import Any, Final

from grpc import aio
from tests.hostile.half_sent import HalfSender

from gradewire_proto.v1 import scoring_pb2, scoring_pb2_grpc, types_pb2

_MIB: Final = 1 << 20
_MOST: Final = 32 * _MIB - 1024
_OPTIONS: Final = (
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", -1),
    ("grpc.enable_retries", 0),
    ("grpc.use_local_subchannel_pool", 1),
)
SMILE: Final = types_pb2.MetricSpec(smile=types_pb2.SmileParameters())
Attack = Callable[[int], Awaitable[str]]


def _channel(port: int) -> aio.Channel:
    return aio.insecure_channel(f"127.0.0.1:{port}", options=_OPTIONS)


async def _score(port: int, data: bytes) -> str:
    async with _channel(port) as channel:
        try:
            await channel.unary_unary("/gradewire.v1.Scoring/Score")(data, timeout=60)
        except aio.AioRpcError as error:
            return error.code().name
    return "OK"


async def long_texts(port: int) -> str:
    """Thirty megabytes without a blank."""
    items = [types_pb2.Item(references=["a cat"], prediction=f"{index}" + "ab." * 499_000) for index in range(20)]
    return await _score(port, scoring_pb2.ScoreRequest(items=items, metrics=[SMILE]).SerializeToString())


async def few_long_texts(port: int) -> str:
    """Four texts of one letter."""
    items = [types_pb2.Item(references=["a"], prediction=f"{index}" + "a" * 1_500_000) for index in range(4)]
    return await _score(port, scoring_pb2.ScoreRequest(items=items, metrics=[SMILE]).SerializeToString())


async def unread_streams(port: int, streams: int = 40) -> str:
    """Streams that send as much as they can and read nothing."""
    item = types_pb2.Item(references=["a cat"] * 10, prediction="word " * 1500)
    full = scoring_pb2.ScoreStreamRequest(items=scoring_pb2.ScoreStreamItems(items=[item] * 4000)).SerializeToString()
    config = scoring_pb2.ScoreStreamRequest(config=scoring_pb2.ScoreStreamConfig(metrics=[SMILE])).SerializeToString()
    written = 0

    async def write(call: Any) -> None:
        nonlocal written
        await call.write(config)
        for _ in range(4):
            await call.write(full)
            written += 1

    async with AsyncExitStack() as stack:
        writing = []
        for _ in range(streams):
            channel = await stack.enter_async_context(_channel(port))
            writing.append(asyncio.create_task(write(channel.stream_stream("/gradewire.v1.Scoring/ScoreStream")())))
        await asyncio.wait(writing, timeout=15)
        for task in writing:
            task.cancel()
        await asyncio.gather(*writing, return_exceptions=True)
    return f"{written} of {streams * 4} messages taken"


async def empty_items(port: int) -> str:
    """Sixteen million items of two bytes."""
    return await _score(port, b"\x0a\x00" * (_MOST // 2) + b"\x12\x02\x0a\x00")


async def empty_metrics(port: int) -> str:
    """Sixteen million metrics of two bytes."""
    return await _score(port, b"\x12\x00" * (_MOST // 2))


async def empty_references(port: int) -> str:
    """Sixteen million references of two bytes."""
    body = b"\x1a\x00" * (_MOST // 2)
    size = len(body)
    varint = bytes((size & 0x7F | 0x80, size >> 7 & 0x7F | 0x80, size >> 14 & 0x7F | 0x80, size >> 21))
    return await _score(port, b"\x0a" + varint + body + b"\x12\x02\x0a\x00")


async def half_sent(port: int, senders: int = 60, path: str = "Score", token: str = "", wait_s: float = 8) -> str:
    """Messages of 32 MB without their last byte."""
    config = scoring_pb2.ScoreStreamRequest(config=scoring_pb2.ScoreStreamConfig(metrics=[SMILE])).SerializeToString()
    before = config if path == "ScoreStream" else b""
    callers = [
        HalfSender(port, f"/gradewire.v1.Scoring/{path}", _MOST, token=token, before=before) for _ in range(senders)
    ]
    running = [asyncio.create_task(caller.run()) for caller in callers]
    await asyncio.wait(running, timeout=wait_s)
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)
    sent = sum(caller.sent_bytes for caller in callers) >> 20
    return f"{sent} MiB sent, {sum(caller.refused for caller in callers)} of {senders} refused"


async def half_sent_streams(port: int) -> str:
    """The same on streams."""
    return await half_sent(port, path="ScoreStream")


async def idle_connections(port: int, connections: int = 3000, wait_s: float = 2) -> str:
    """Connections that do nothing."""
    opened: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
    refused = 0
    try:
        for _ in range(connections):
            try:
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                refused += 1
                continue
            writer.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0")
            opened.append((reader, writer))
        await asyncio.sleep(wait_s)
        closed = sum(reader.at_eof() or reader.exception() is not None for reader, _ in opened)
    finally:
        for _, writer in opened:
            writer.close()
    return f"{len(opened)} opened, {refused + closed} refused"


async def idle_streams(port: int, streams: int = 5000, wait_s: float = 2) -> str:
    """Streams that send their config and nothing else."""
    config = scoring_pb2.ScoreStreamRequest(config=scoring_pb2.ScoreStreamConfig(metrics=[SMILE]))

    async def requests() -> AsyncIterator[scoring_pb2.ScoreStreamRequest]:
        yield config
        await asyncio.Event().wait()

    opened: list[Any] = []
    async with AsyncExitStack() as stack:
        stubs: list[Any] = [
            scoring_pb2_grpc.ScoringStub(await stack.enter_async_context(_channel(port))) for _ in range(50)
        ]
        opened = [stubs[number % len(stubs)].ScoreStream(requests()) for number in range(streams)]
        answers = await asyncio.gather(*(call.read() for call in opened), return_exceptions=True)
        await asyncio.sleep(wait_s)
        for call in opened:
            call.cancel()
    refused = sum(isinstance(answer, BaseException) or answer is aio.EOF for answer in answers)
    return f"{streams - refused} open, {refused} refused"


ATTACKS: Final[Mapping[str, Attack]] = {
    "long texts": long_texts,
    "four long texts": few_long_texts,
    "unread streams": unread_streams,
    "empty items": empty_items,
    "empty metrics": empty_metrics,
    "empty references": empty_references,
    "half-sent messages": half_sent,
    "half-sent messages of streams": half_sent_streams,
    "idle connections": idle_connections,
    "idle streams": idle_streams,
}
