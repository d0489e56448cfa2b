"""Messages on their way are ended when memory is short, and the connections that hold most are found."""

import asyncio
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest
from google.protobuf.message import Message
from grpc import aio
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import example_count

from gradewire_proto.v1 import scoring_pb2, types_pb2
from gradewire_server import memory
from gradewire_server.memory import MemoryGuard, resident_bytes
from gradewire_server.requests.errors import OverloadedError
from gradewire_server.requests.turns import Permits
from gradewire_server.rpc import messages
from gradewire_server.rpc.messages import Messages, Receiver, StreamMemory, serialize_score
from gradewire_server.rpc.sockets import Sockets

_MIB = 1 << 20


def sent(*messages: bytes) -> Callable[[], Awaitable[object]]:
    left = iter(messages)

    async def read() -> object:
        return next(left, None)

    return read


async def nothing() -> object:
    return await asyncio.Event().wait()


async def test_messages_are_handed_over_and_counted() -> None:
    receiver, messages = Receiver(), sent(b"one", b"two")
    assert await receiver.receive(messages, "peer", within_s=5) == b"one"
    assert await receiver.receive(messages, "peer", within_s=5) == b"two"
    assert await receiver.receive(messages, "peer", within_s=5) is None
    assert receiver.delivered["peer"] > 6


async def test_what_does_not_come_in_time_is_ended_unless_something_is_in_work() -> None:
    receiver, asked = Receiver(), []

    def in_work() -> bool:
        asked.append(1)
        return len(asked) < 3

    with pytest.raises(TimeoutError):
        await receiver.receive(nothing, "peer", within_s=0.01, in_work=in_work)
    assert len(asked) == 3


async def test_the_calls_of_a_connection_are_ended_and_those_of_others_go_on() -> None:
    receiver = Receiver()
    waiting = [asyncio.create_task(receiver.receive(nothing, peer, within_s=60)) for peer in ("a", "a", "b")]
    await asyncio.sleep(0)
    assert receiver.shed("a") == 2
    assert receiver.shed("a") == 0
    for task in waiting[:2]:
        with pytest.raises(OverloadedError):
            await task
    assert not waiting[2].done()
    waiting[2].cancel()
    await asyncio.gather(waiting[2], return_exceptions=True)
    assert receiver.shed("b") == 0


async def test_large_messages_are_refused_while_memory_is_short() -> None:
    receiver = Receiver()
    receiver.memory_is_short = True
    assert await receiver.receive(sent(b"small"), "peer", within_s=5) == b"small"
    with pytest.raises(OverloadedError) as caught:
        await receiver.receive(sent(b"x" * 100_000), "peer", within_s=5)
    assert caught.value.retry_after_s > 0


async def test_those_that_have_sent_most_are_at_fault() -> None:
    receiver, shed = Receiver(), []
    guard = MemoryGuard(receiver, 1024 * _MIB, 1, shed=shed.append)
    guard.at_fault({}, 0)
    receiver.delivered["honest"] = 900 * _MIB
    received = {"honest": 900 * _MIB, "large": 60 * _MIB, "largest": 90 * _MIB, "small": 1000, "refused": 80 * _MIB}
    peers = ("honest", "large", "largest", "small")
    waiting = {peer: asyncio.create_task(receiver.receive(nothing, peer, within_s=60)) for peer in peers}
    await asyncio.sleep(0)
    assert guard.at_fault(received, 64 * _MIB) == ["largest"]
    assert guard.at_fault(received, 0) == ["largest", "large"]
    assert guard.at_fault(received, 500 * _MIB) == []
    guard.end(["largest", "gone"])
    assert shed == [1]
    with pytest.raises(OverloadedError):
        await waiting.pop("largest")
    for each in waiting.values():
        each.cancel()
    await asyncio.gather(*waiting.values(), return_exceptions=True)


async def test_a_connection_that_takes_too_much_is_cut() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as sender, listening.accept()[0] as taken:
            host, sender_port = sender.getsockname()
            await asyncio.to_thread(exchange, sender, taken, _MIB)
            found = Sockets(port).received(_MIB)
            assert {peer: each.size_bytes for peer, each in found.items()} == {f"ipv4:{host}:{sender_port}": _MIB}
            assert Sockets(port).received(2 * _MIB) == {}
            shed: list[int] = []
            receiver = Receiver()
            waiting = asyncio.create_task(receiver.receive(nothing, f"ipv4:{host}:{sender_port}", within_s=60))
            await asyncio.sleep(0)
            guard = MemoryGuard(receiver, 1024, port, shed=shed.append)
            assert not guard.look(0)
            assert guard.look(1024)
            assert shed == []
            await asyncio.to_thread(exchange, sender, taken, _MIB)
            guard.look(1024)
            assert shed == [1]
            with pytest.raises(ConnectionResetError):
                sender.recv(1)
            waiting.cancel()


def exchange(sender: socket.socket, taken: socket.socket, size_bytes: int) -> None:
    for _ in range(size_bytes // 65_536):
        sender.sendall(b"x" * 65_536)
        left = 65_536
        while left:
            left -= len(taken.recv(left))


async def test_the_guard_looks_until_it_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = asyncio.Event()
    loop = asyncio.get_running_loop()
    receiver = Receiver()
    guard = MemoryGuard(receiver, 1, 1, shed=lambda _: None)
    monkeypatch.setattr(memory, "resident_bytes", lambda: loop.call_soon_threadsafe(looked.set) and 0)
    guard.start()
    await looked.wait()
    guard.close()
    assert not guard._thread.is_alive()


def test_the_resident_size_is_known() -> None:
    assert resident_bytes() > _MIB


@pytest.fixture
def shared() -> Permits:
    return Permits(800, "bytes of streams")


async def test_a_message_leaves_with_its_last_item(shared: Permits) -> None:
    held = StreamMemory(shared, 800)
    await held.take(40, 2)
    await held.take(60, 1)
    held.done(1)
    assert shared.taken == 100
    held.done(1)
    assert shared.taken == 60
    assert held.in_work()
    held.done(1)
    assert shared.taken == 0
    assert not held.in_work()


async def test_a_message_without_items_holds_nothing(shared: Permits) -> None:
    held = StreamMemory(shared, 800)
    await held.take(500, 0)
    assert shared.taken == 0
    assert not held.in_work()


async def test_one_stream_waits_at_an_eighth(shared: Permits) -> None:
    held = StreamMemory(shared, 800)
    await held.take(100, 1)
    waiting = asyncio.create_task(held.take(1, 1))
    await asyncio.sleep(0)
    assert not waiting.done()
    held.done(1)
    await waiting
    assert shared.taken == 1


async def test_all_streams_wait_at_the_limit_and_what_gives_up_holds_nothing(shared: Permits) -> None:
    streams = [StreamMemory(shared, 800) for _ in range(9)]
    for held in streams[:8]:
        await held.take(100, 1)
    waiting = asyncio.create_task(streams[8].take(50, 1))
    await asyncio.sleep(0)
    assert shared.taken == 800
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    streams[0].close()
    await streams[8].take(100, 1)
    assert shared.taken == 800
    for held in streams:
        held.close()
    assert shared.taken == 0


@settings(max_examples=example_count(60))
@given(ids=st.lists(st.text(max_size=300), max_size=30), at_once=st.integers(0, 20), server_s=st.floats(0, 9))
async def test_pieces_are_the_whole(ids: list[str], at_once: int, server_s: float) -> None:
    reply = scoring_pb2.ScoreResponse(
        items=[scoring_pb2.ItemResult(index=index, id=name, complete=True) for index, name in enumerate(ids)],
        provenance=[types_pb2.Provenance(name="smile")],
        server_s=server_s,
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(messages, "_RESULTS_AT_ONCE", at_once)
        assert await serialize_score(reply, 1 << 30) == reply.SerializeToString()


async def test_what_is_too_large_is_not_built_to_its_end() -> None:
    reply = scoring_pb2.ScoreResponse(items=[scoring_pb2.ItemResult(id="x" * 1000)] * 5000)
    assert 100_000 < len(await serialize_score(reply, 100_000)) < 110_000


async def test_a_call_whose_caller_has_gone_before_it_is_accepted_is_cancelled() -> None:
    async def send_initial_metadata(_metadata: object) -> None:
        raise aio.InternalError('Failed "execute_batch"')

    async def replies() -> AsyncGenerator[Message]:
        yield scoring_pb2.ScoreStreamResponse()

    context: Any = SimpleNamespace(send_initial_metadata=send_initial_metadata)
    absent: Any = None
    with pytest.raises(asyncio.CancelledError):
        await Messages(absent, absent, Receiver(), absent, context).send(replies())
