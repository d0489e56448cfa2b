"""Limit a server's memory: stop oversized incoming messages, return freed blocks, and collect garbage when idle."""

import asyncio
import ctypes
import gc
import logging
import os
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final

from gradewire_server.rpc.messages import Receiver
from gradewire_server.rpc.sockets import Sockets
from gradewire_server.rpc.telemetry import RpcTelemetry, watch_lateness

_log = logging.getLogger(__name__)

_FORGOTTEN_S: Final = 60.0
"""Seconds after which every message in transit has been delivered or dropped."""
_NO_LOOK_S: Final = 1.0
"""Maximum number of seconds since the last check. After a longer gap, dropped bytes look like unfinished messages."""
_CHECK_EVERY_S: Final = 0.025
_CHECK_OFTEN_EVERY_S: Final = 0.005
"""Seconds between checks while unfinished messages may use too much memory."""
_WATCHED_SHARE: Final = 0.1
"""Share of the requests' memory. While less is in use, only the resident size is checked, and not each connection."""
_CUT_SHARE: Final = 0.25
"""Share of the requests' memory. Above this share, connections at fault are closed at once."""
_FULL_SHARE: Final = 0.45
"""Share of the requests' memory. Above this share, even large messages in transit are refused."""
_IN_TRANSIT_SHARE: Final = 0.1
"""Maximum share of the requests' memory for messages in transit."""
_LEAST_ROOM_BYTES: Final = 128 << 20
"""Minimum memory for requests. With less memory, the server refuses even requests of ordinary size."""
_TRIM_EVERY_S: Final = 1.0
_LEAST_BLAMED_BYTES: Final = 256 * 1024
"""Minimum number of bytes in transit that puts a connection at fault."""
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
_STATM: Final = "/proc/self/statm"
_STATM_BYTES: Final = 256
_M_MMAP_THRESHOLD: Final = -3
_M_ARENA_MAX: Final = -8
"""Parameter numbers for `mallopt`, from glibc's malloc.h."""
_MAPPED_FROM_BYTES: Final = 4 << 20
"""Minimum size of the blocks that glibc maps separately. Encoders' blocks are smaller."""
_ARENAS: Final = 4
_COLLECT_OLD_AFTER: Final = 100
"""Number of young collections before a collection of old objects: about 700 000 new objects. Python's default is 10."""
_COLLECT_EVERY_S: Final = 10.0
_COLLECT_ALL_EVERY_S: Final = 3600.0
"""Seconds between collections of all objects, including frozen objects that may have become garbage."""


class Unfinished:
    """An estimate of the bytes in transit on each connection, from repeated checks by one thread."""

    def __init__(self) -> None:
        self._bases: dict[str, int] = {}
        self._next_bases: dict[str, int] = {}
        self._looked_s = self._renewed_s = float("-inf")

    def look(
        self, received: Mapping[str, int], delivered: Mapping[str, int], waiting: Collection[str], now_s: float
    ) -> dict[str, int]:
        """Return the bytes in transit by peer, and forget connections that are not in `received`.

        `waiting` contains the peers with a call that waits for a message.
        """
        unexplained = {peer: count - delivered.get(peer, 0) for peer, count in received.items()}
        if now_s - self._looked_s > _NO_LOOK_S:
            self._bases = dict(unexplained)
            self._next_bases, self._renewed_s = dict(unexplained), now_s
        elif now_s - self._renewed_s > _FORGOTTEN_S:
            self._bases, self._next_bases, self._renewed_s = self._next_bases, dict(unexplained), now_s
        self._looked_s = now_s
        bases: dict[str, int] = {}
        for peer, count in unexplained.items():
            # A new connection may have an old connection's address, and thus more delivered than received bytes.
            bases[peer] = min(self._bases.get(peer, 0), count) if peer in waiting else count
        self._bases = bases
        return {peer: count - bases[peer] for peer, count in unexplained.items() if count > bases[peer]}


def resident_bytes() -> int:
    """Return this process's resident memory without file pages, which the system can reclaim; 0 if unknown."""
    try:
        descriptor = os.open(_STATM, os.O_RDONLY)
    except OSError:
        return 0
    try:  # without a file object, because this runs forty times a second
        _, resident, shared, *_ = os.read(descriptor, _STATM_BYTES).split()
        return (int(resident) - int(shared)) * _PAGE_BYTES
    finally:
        os.close(descriptor)


class MemoryGuard:
    """A thread that checks memory between `start` and `close`. It calls `shed` with the number of dropped messages."""

    def __init__(self, receiver: Receiver, limit_bytes: int, port: int, *, shed: Callable[[int], None]) -> None:
        self._receiver = receiver
        self._limit = limit_bytes
        self._own = 0
        self._sockets = Sockets(port)
        self._unfinished = Unfinished()
        self._shed = shed
        self._trim_at_s = 0.0
        self._ended = False
        self._thread = threading.Thread(target=self._run, name="gradewire-memory", daemon=True)
        self._loop = asyncio.get_running_loop()

    def start(self) -> None:
        """Start to check the memory every 25 ms."""
        self._thread.start()

    def close(self) -> None:
        """Stop checking."""
        self._ended = True
        self._thread.join()

    def loaded(self) -> None:
        """Record how much memory the server itself uses, mostly for models. Requests get the rest of the limit."""
        self._own = resident_bytes()
        left = self._limit - self._own
        if left < _LEAST_ROOM_BYTES:
            _log.warning(
                "memory_limit leaves %d MiB for requests, because the server itself uses %d MiB: large requests will "
                "be refused. Set memory_limit to at least %d MiB",
                max(0, left) >> 20,
                self._own >> 20,
                (self._own + _LEAST_ROOM_BYTES) >> 20,
            )

    def look(self, resident: int) -> bool:
        """Act on a resident size. Return True to check again soon. Any thread may call this method."""
        taken, room = resident - self._own, max(1, self._limit - self._own)
        self._receiver.memory_is_short = taken > room * _FULL_SHARE
        if taken < room * _WATCHED_SHARE:
            return False
        received = self._sockets.received(_LEAST_BLAMED_BYTES)
        sizes = {peer: each.size_bytes for peer, each in received.items()}
        allowed = 0 if taken > room * _FULL_SHARE else int(room * _IN_TRANSIT_SHARE)
        at_fault = self.at_fault(sizes, allowed)
        if at_fault and taken > room * _CUT_SHARE:
            count = sum(self._sockets.cut(peer, received[peer].descriptor) for peer in at_fault)
            self._shed(count)
            _log.warning("Closed %d connections because their unfinished messages used too much memory", count)
        elif at_fault:
            self._loop.call_soon_threadsafe(self.end, at_fault)
        return True

    def at_fault(self, received: Mapping[str, int], allowed: int) -> list[str]:
        """Return the connections with the most bytes in transit. All others have at most `allowed` bytes in total."""
        found = self._unfinished.look(
            received, dict(self._receiver.delivered), self._receiver.waiting(), time.monotonic()
        )
        unfinished = {peer: count for peer, count in found.items() if count > _LEAST_BLAMED_BYTES}
        total = sum(unfinished.values())
        at_fault = []
        for peer in sorted(unfinished, key=unfinished.__getitem__, reverse=True):
            if total <= allowed:
                break
            total -= unfinished[peer]
            at_fault.append(peer)
        return at_fault

    def end(self, peers: Sequence[str]) -> None:
        """End the waiting calls on these connections. Call this method on the event loop."""
        count = sum(map(self._receiver.shed, peers))
        if count:
            self._shed(count)
            _log.warning("Ended %d calls because their unfinished messages used too much memory", count)

    def _run(self) -> None:
        closely = False
        while not self._ended:
            # Waiting for an event would take longer than the check.
            time.sleep(_CHECK_OFTEN_EVERY_S if closely else _CHECK_EVERY_S)
            try:
                closely = self.look(resident_bytes())
            except Exception:  # noqa: BLE001 - without this thread, memory would be unlimited
                _log.exception("A check of the memory that messages use failed; checks continue")
            if closely and time.monotonic() >= self._trim_at_s:
                self._trim_at_s = time.monotonic() + _TRIM_EVERY_S
                _trim()


@asynccontextmanager
async def guarded(
    port: int, receiver: Receiver, telemetry: RpcTelemetry, *, memory_limit_bytes: int
) -> AsyncIterator[MemoryGuard]:
    """Guard the memory of the gRPC server on `port` within the context. Yield the guard."""
    memory = MemoryGuard(receiver, memory_limit_bytes, port, shed=telemetry.messages_shed.inc)
    memory.start()
    watching = asyncio.create_task(watch_lateness(telemetry.loop_late.observe))
    try:
        yield memory
    finally:
        watching.cancel()
        memory.close()


def _trim() -> None:
    """Return freed memory to the system. The C library would keep this memory."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def return_large_blocks() -> None:
    """Make glibc map large blocks separately, so that it returns freed blocks to the system.

    By default, glibc maps large blocks separately only until the first of them is freed. With a different C library,
    this function does nothing.
    """
    if sys.platform != "linux":
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _MAPPED_FROM_BYTES)
        mallopt(_M_ARENA_MAX, _ARENAS)


def collect_and_keep() -> None:
    """Collect garbage and freeze the objects in use, so that later collections skip these objects.

    Do not call this while a request is running. The request's objects in reference cycles would stay for a long time.
    """
    gc.collect()
    gc.freeze()


@asynccontextmanager
async def collect_when_idle(idle: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
    """Within the context, collect garbage only while no call is in flight. At the end, restore Python's defaults.

    If calls are always in flight, old objects are collected only after many new ones were created. Use this for only
    one server in a process.
    """
    thresholds = gc.get_threshold()
    gc.set_threshold(*thresholds[:2], _COLLECT_OLD_AFTER)
    looking = asyncio.create_task(_collect_while_idle(idle))
    try:
        yield
    finally:
        looking.cancel()
        gc.unfreeze()
        gc.set_threshold(*thresholds)


async def _collect_while_idle(idle: Callable[[], Awaitable[None]]) -> None:
    clock = asyncio.get_running_loop().time
    all_due_s = clock() + _COLLECT_ALL_EVERY_S
    while True:
        await asyncio.sleep(_COLLECT_EVERY_S)
        await idle()
        if clock() >= all_due_s:
            gc.unfreeze()
            all_due_s = clock() + _COLLECT_ALL_EVERY_S
        collect_and_keep()
