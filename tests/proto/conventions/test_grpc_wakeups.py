"""The bytes by which grpc.aio's thread wakes loops never pile up, and none is read in another loop's place."""

import asyncio
import socket
import threading
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import grpc.aio
import pytest

from gradewire_proto.conventions.grpc_wakeups import drain_wakeups

_EVENTS = 20_000


class PollerCompletionQueue:
    """Reads as grpc.aio does: one byte, then all the events that there are."""

    def __init__(self, reading: socket.socket) -> None:
        self._reading = reading
        self.rounds = 0
        self.events: deque[int] = deque()
        self.taken: deque[int] = deque()

    def _handle_events(self, _loop: object = None) -> None:
        assert self._reading.recv(1) == b"1"
        self.rounds += 1
        while self.events:
            try:
                self.taken.append(self.events.popleft())
            except IndexError:  # another loop was faster
                break


@pytest.fixture
def sockets() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.settimeout(0)
        yield ours, theirs


async def _all_read(reading: socket.socket) -> None:
    for _ in range(30):
        await asyncio.sleep(0)
    with pytest.raises(BlockingIOError):
        reading.recv(1)


@pytest.mark.parametrize("is_partial", [True, False])
async def test_two_hundred_bytes_are_read_in_a_few_rounds(
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
        assert queue.rounds == 16
        writing.sendall(b"1")
        await _all_read(reading)
        assert queue.rounds == 17
    finally:
        loop.remove_reader(reading)


def test_loops_that_share_the_bytes_take_every_event_and_log_nothing(
    sockets: tuple[socket.socket, socket.socket], caplog: pytest.LogCaptureFixture
) -> None:
    """As in a process with a server and a synchronous client: each byte wakes every loop (grpc/grpc#25364)."""
    reading, writing = sockets
    queue, ready, done = PollerCompletionQueue(reading), threading.Barrier(4), threading.Event()

    async def take_until_done() -> None:
        loop = asyncio.get_running_loop()
        loop.add_reader(reading, partial(queue._handle_events, loop))
        assert drain_wakeups(loop)
        ready.wait(10)
        await asyncio.to_thread(done.wait, 30)
        loop.remove_reader(reading)

    with ThreadPoolExecutor(3) as threads:
        loops = [threads.submit(asyncio.run, take_until_done()) for _ in range(3)]
        ready.wait(10)
        for event in range(_EVENTS):
            queue.events.append(event)
            writing.sendall(b"1")
        give_up_s = time.monotonic() + 10
        while len(queue.taken) < _EVENTS and time.monotonic() < give_up_s:
            time.sleep(0.01)
        done.set()
        for loop in loops:
            loop.result(10)
    assert sorted(queue.taken) == list(range(_EVENTS))
    assert [record.getMessage() for record in caplog.records] == []


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
