"""Messages on their way are ended when memory is short, and the connections that hold most are found."""

import asyncio
import socket
from collections.abc import AsyncIterator

import pytest

from gradewire_server.requests.errors import OverloadedError
from gradewire_server.rpc.receiving import memory_guard
from gradewire_server.rpc.receiving.memory_guard import MemoryGuard, resident_bytes
from gradewire_server.rpc.receiving.receiver import Receiver
from gradewire_server.rpc.receiving.sockets import Sockets

_MIB = 1 << 20


async def sent(*messages: bytes) -> AsyncIterator[bytes]:
    for message in messages:
        yield message


async def nothing() -> AsyncIterator[bytes]:
    await asyncio.Event().wait()
    yield b""


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
        await receiver.receive(nothing(), "peer", within_s=0.01, in_work=in_work)
    assert len(asked) == 3


async def test_the_calls_of_a_connection_are_ended_and_those_of_others_go_on() -> None:
    receiver = Receiver()
    waiting = [asyncio.create_task(receiver.receive(nothing(), peer, within_s=60)) for peer in ("a", "a", "b")]
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
    waiting = {peer: asyncio.create_task(receiver.receive(nothing(), peer, within_s=60)) for peer in peers}
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
            waiting = asyncio.create_task(receiver.receive(nothing(), f"ipv4:{host}:{sender_port}", within_s=60))
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
    monkeypatch.setattr(memory_guard, "resident_bytes", lambda: loop.call_soon_threadsafe(looked.set) and 0)
    guard.start()
    await looked.wait()
    guard.close()
    assert not guard._thread.is_alive()


def test_the_resident_size_is_known() -> None:
    assert resident_bytes() > _MIB
