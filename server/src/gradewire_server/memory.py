"""The memory of a server: messages that take too much of it are ended, freed blocks go back, garbage is collected."""

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
"""Seconds after which no message is on its way that was so before."""
_NO_LOOK_S: Final = 1.0
"""Without a look for so long, nobody knows what was thrown away meanwhile."""
_CHECK_EVERY_S: Final = 0.025
_CHECK_OFTEN_EVERY_S: Final = 0.005
"""While messages may be on their way that take too much."""
_WATCHED_SHARE: Final = 0.1
"""A share of the memory beside what the server itself takes; below it nothing but the resident size is looked at."""
_CUT_SHARE: Final = 0.25
"""Above it connections are cut, which waits for nobody."""
_FULL_SHARE: Final = 0.45
"""Above it large messages are refused, and nothing large may be on its way."""
_ON_THEIR_WAY_SHARE: Final = 0.1
"""Messages that are on their way get this part of the same memory."""
_LEAST_ROOM_BYTES: Final = 128 << 20
"""With less beside itself the server refuses requests of ordinary sizes."""
_TRIM_EVERY_S: Final = 1.0
_LEAST_BLAMED_BYTES: Final = 256 * 1024
"""A connection that has less than this on its way is never at fault."""
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
_STATM: Final = "/proc/self/statm"
_STATM_BYTES: Final = 256
_M_MMAP_THRESHOLD: Final = -3
_M_ARENA_MAX: Final = -8
"""Numbers of glibc's malloc.h."""
_MAPPED_FROM_BYTES: Final = 4 << 20
"""More than an encoder's run allocates at once: only messages are larger, and their memory goes back when they do."""
_ARENAS: Final = 4
_COLLECT_OLD_AFTER: Final = 100
"""Looks at younger objects until old ones are looked at in any case, in place of 10: some 700 000 new objects."""
_COLLECT_EVERY_S: Final = 10.0
_COLLECT_ALL_EVERY_S: Final = 3600.0
"""Then everything is looked at once more: what is in use now may be garbage by then."""


class Unfinished:
    """Looked at again and again while memory may be short; belongs to one thread."""

    def __init__(self) -> None:
        self._bases: dict[str, int] = {}
        self._next_bases: dict[str, int] = {}
        self._looked_s = self._renewed_s = float("-inf")

    def look(
        self, received: Mapping[str, int], delivered: Mapping[str, int], waiting: Collection[str], now_s: float
    ) -> dict[str, int]:
        """Return bytes that are on their way, by peer; connections that are not in `received` are forgotten.

        `waiting` are peers of which a call waits for a message.
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
            # A new connection may have the address of one before it, of which more was handed over than it has sent.
            bases[peer] = min(self._bases.get(peer, 0), count) if peer in waiting else count
        self._bases = bases
        return {peer: count - bases[peer] for peer, count in unexplained.items() if count > bases[peer]}


def resident_bytes() -> int:
    """Memory that this process has now, without pages of files; 0 where the system does not say.

    Pages of files, such as those that LMDB has mapped, are the system's to take back when others need them.
    """
    try:
        descriptor = os.open(_STATM, os.O_RDONLY)
    except OSError:
        return 0
    try:  # no file object, for this is asked forty times a second
        _, resident, shared, *_ = os.read(descriptor, _STATM_BYTES).split()
        return (int(resident) - int(shared)) * _PAGE_BYTES
    finally:
        os.close(descriptor)


class MemoryGuard:
    """Looks again and again between `start` and `close`, and tells how many messages it has ended."""

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
        """Begins to look, every 25 ms; that costs about 20 µs where all is well."""
        self._thread.start()

    def close(self) -> None:
        """Ends it."""
        self._ended = True
        self._thread.join()

    def loaded(self) -> None:
        """Note that what the process has now is its own, its models above all; requests get the rest of the limit."""
        self._own = resident_bytes()
        left = self._limit - self._own
        if left < _LEAST_ROOM_BYTES:
            _log.warning(
                "memory_limit leaves %d MiB for requests beside the %d MiB that the server has now: large ones will be "
                "refused; at least %d MiB are needed",
                max(0, left) >> 20,
                self._own >> 20,
                (self._own + _LEAST_ROOM_BYTES) >> 20,
            )

    def look(self, resident: int) -> bool:
        """Acts on a resident size; from any thread. Returns whether to look again soon."""
        taken, room = resident - self._own, max(1, self._limit - self._own)
        self._receiver.memory_is_short = taken > room * _FULL_SHARE
        if taken < room * _WATCHED_SHARE:
            return False
        received = self._sockets.received(_LEAST_BLAMED_BYTES)
        sizes = {peer: each.size_bytes for peer, each in received.items()}
        allowed = 0 if taken > room * _FULL_SHARE else int(room * _ON_THEIR_WAY_SHARE)
        at_fault = self.at_fault(sizes, allowed)
        if at_fault and taken > room * _CUT_SHARE:
            count = sum(self._sockets.cut(peer, received[peer].descriptor) for peer in at_fault)
            self._shed(count)
            _log.warning("%d connections were cut: what was on its way there took too much memory", count)
        elif at_fault:
            self._loop.call_soon_threadsafe(self.end, at_fault)
        return True

    def at_fault(self, received: Mapping[str, int], allowed: int) -> list[str]:
        """Return connections that have sent most without ending a message.

        The rest is then no more than the allowed bytes.
        """
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
        """Ends the calls of connections that wait for messages; on the event loop."""
        count = sum(map(self._receiver.shed, peers))
        if count:
            self._shed(count)
            _log.warning("%d calls were ended: their messages were on their way and took too much memory", count)

    def _run(self) -> None:
        closely = False
        while not self._ended:
            # An event that can be waited for costs more than the look.
            time.sleep(_CHECK_OFTEN_EVERY_S if closely else _CHECK_EVERY_S)
            try:
                closely = self.look(resident_bytes())
            except Exception:  # noqa: BLE001 - whatever it is: without this thread memory would have no bound
                _log.exception("looking for messages that take too much memory failed")
            if closely and time.monotonic() >= self._trim_at_s:
                self._trim_at_s = time.monotonic() + _TRIM_EVERY_S
                _trim()


@asynccontextmanager
async def guarded(
    port: int, receiver: Receiver, telemetry: RpcTelemetry, *, memory_limit_bytes: int
) -> AsyncIterator[MemoryGuard]:
    """Guard the server on `port` of gRPC for as long as the context lasts; give the guard, to be told of models."""
    memory = MemoryGuard(receiver, memory_limit_bytes, port, shed=telemetry.messages_shed.inc)
    memory.start()
    watching = asyncio.create_task(watch_lateness(telemetry.loop_late.observe))
    try:
        yield memory
    finally:
        watching.cancel()
        memory.close()


def _trim() -> None:
    """Gives memory that was freed back to the system, which C libraries put off."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def return_large_blocks() -> None:
    """Has large blocks mapped on their own, so that they return to the system when they are freed.

    Otherwise glibc learns from the first large block that is freed to keep the next ones, and keeps parts of them for
    each thread. Does nothing where the C library is another one.
    """
    if sys.platform != "linux":
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _MAPPED_FROM_BYTES)
        mallopt(_M_ARENA_MAX, _ARENAS)


def collect_and_keep() -> None:
    """Frees what is garbage. What is in use is not looked at again, and freed as ever when it is let go.

    To be called while no call is answered: what a call holds would be kept for long if it ended up in a cycle.
    """
    gc.collect()
    gc.freeze()


@asynccontextmanager
async def collect_when_idle(idle: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
    """Look for garbage again and again, only when no call is in flight; afterwards all is as Python has it.

    Where a call is in flight at any time, old objects are looked at after many new ones alone. For one server in a
    process: the collector is the process's.
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
