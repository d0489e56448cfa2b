"""The bytes by which grpc.aio's thread wakes a loop are read at once, however slowly the loop goes round."""

import asyncio
import socket
from collections.abc import Iterator
from functools import partial

import grpc.aio
import pytest

from gradewire_proto.conventions.grpc_wakeups import drain_wakeups


class PollerCompletionQueue:
    """Reads as grpc.aio does: one byte a round."""

    def __init__(self, reading: socket.socket) -> None:
        self._reading = reading
        self.rounds = 0

    def _handle_events(self, _loop: object = None) -> None:
        assert self._reading.recv(1) == b"1", "it would block where none is left"
        self.rounds += 1


@pytest.fixture
def sockets() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.settimeout(5)
        yield ours, theirs


async def _all_read(reading: socket.socket) -> None:
    for _ in range(5):
        await asyncio.sleep(0)
    reading.settimeout(0)
    with pytest.raises(BlockingIOError):
        reading.recv(1)


@pytest.mark.parametrize("is_partial", [True, False])
async def test_all_bytes_are_read_in_one_round(
    sockets: tuple[socket.socket, socket.socket], *, is_partial: bool
) -> None:
    reading, writing = sockets
    loop, queue = asyncio.get_running_loop(), PollerCompletionQueue(reading)
    handle = queue._handle_events
    loop.add_reader(reading, partial(handle, loop) if is_partial else handle)
    try:
        assert drain_wakeups(loop)
        assert not drain_wakeups(loop), "once is enough"
        writing.sendall(b"1" * 200)
        await _all_read(reading)
        assert queue.rounds == 1
        reading.settimeout(5)
        writing.sendall(b"1")
        await _all_read(reading)
        assert queue.rounds == 2
    finally:
        loop.remove_reader(reading)


async def test_the_reader_of_the_version_that_is_installed_is_found() -> None:
    async with grpc.aio.insecure_channel("127.0.0.1:1"):
        assert drain_wakeups(asyncio.get_running_loop())


async def test_other_readers_stay_as_they_are(sockets: tuple[socket.socket, socket.socket]) -> None:
    reading, writing = sockets
    loop, read = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(reading, read.set)
    try:
        drain_wakeups(loop)
        writing.sendall(b"22")
        async with asyncio.timeout(5):
            await read.wait()
        assert reading.recv(10) == b"22"
    finally:
        loop.remove_reader(reading)


def test_a_loop_without_a_selector_stays_as_it_is() -> None:
    assert not drain_wakeups(object())  # type: ignore[arg-type] # such a loop has no attribute of that name
