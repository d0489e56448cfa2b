"""Keeps the process inside its memory where gRPC holds what it has not handed over yet.

gRPC takes a whole message in before anybody is asked, and its Python has no quota for that. So the resident size is
looked at; once much of the limit is taken, the system is asked how much each connection has sent, and the callers that
have sent most without ending their messages are told to come back. Where that is too slow, their connections are cut.

It looks from a thread: handing a large message over takes gRPC 50 ms of the event loop's time, and many are many times
that.
"""

import asyncio
import ctypes
import logging
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from gradewire_server.rpc.receiving.receiver import Receiver
from gradewire_server.rpc.receiving.sockets import Sockets

_log = logging.getLogger(__name__)

_LOOK_EVERY_S: Final = 0.025
_LOOK_CLOSELY_EVERY_S: Final = 0.005
"""While messages may be on their way that take too much."""
_WATCHED_SHARE: Final = 0.4
"""Of the limit; below it nothing but the resident size is looked at."""
_CUT_SHARE: Final = 0.5
"""Above it connections are cut, which waits for nobody."""
_FULL_SHARE: Final = 0.65
"""Above it large messages are refused, and nothing large may be on its way."""
_ON_THEIR_WAY_DIVISOR: Final = 16
"""Messages that are on their way get this part of the limit."""
_TRIM_EVERY_S: Final = 1.0
_LEAST_BYTES: Final = 256 * 1024
"""A connection that has sent less than this is never at fault."""
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
_STATM: Final = "/proc/self/statm"
_STATM_BYTES: Final = 256


def resident_bytes() -> int:
    """Memory that this process has now; 0 where the system does not say."""
    try:
        descriptor = os.open(_STATM, os.O_RDONLY)
    except OSError:
        return 0
    try:  # no file object, for this is asked forty times a second
        return int(os.read(descriptor, _STATM_BYTES).split()[1]) * _PAGE_BYTES
    finally:
        os.close(descriptor)


class MemoryGuard:
    """Looks again and again between `start` and `close`.

    Args:
        receiver: Knows the calls that wait for messages.
        limit_bytes: Of the process.
        port: That callers connect to.
        shed: Told how many messages were ended.
    """

    def __init__(self, receiver: Receiver, limit_bytes: int, port: int, *, shed: Callable[[int], None]) -> None:
        self._receiver = receiver
        self._limit = limit_bytes
        self._sockets = Sockets(port)
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

    def look(self, resident: int) -> None:
        """Acts on a resident size; from any thread."""
        self._receiver.memory_is_short = resident > self._limit * _FULL_SHARE
        if resident < self._limit * _WATCHED_SHARE:
            return
        received = self._sockets.received(_LEAST_BYTES)
        allowed = 0 if resident > self._limit * _FULL_SHARE else self._limit // _ON_THEIR_WAY_DIVISOR
        at_fault = self.at_fault({peer: each.size_bytes for peer, each in received.items()}, allowed)
        if at_fault and resident > self._limit * _CUT_SHARE:
            count = sum(self._sockets.cut(peer, received[peer].descriptor) for peer in at_fault)
            self._shed(count)
            _log.warning("%d connections were cut: what was on its way there took too much memory", count)
        elif at_fault:
            self._loop.call_soon_threadsafe(self.end, at_fault)

    def at_fault(self, received: Mapping[str, int], allowed: int) -> list[str]:
        """Connections that have sent most without ending a message, so that the rest is no more than allowed.

        Args:
            received: Bytes by peer.
            allowed: Bytes of all of them together.
        """
        delivered = dict(self._receiver.delivered)
        waiting = {peer: count - delivered.get(peer, 0) for peer, count in received.items()}
        waiting = {peer: count for peer, count in waiting.items() if count > _LEAST_BYTES}
        total = sum(waiting.values())
        found = []
        for peer in sorted(waiting, key=waiting.__getitem__, reverse=True):
            if total <= allowed:
                break
            total -= waiting[peer]
            found.append(peer)
        return found

    def end(self, peers: Sequence[str]) -> None:
        """Ends the calls of connections that wait for messages; on the event loop."""
        count = sum(map(self._receiver.shed, peers))
        if count:
            self._shed(count)
            _log.warning("%d calls were ended: their messages were on their way and took too much memory", count)

    def _run(self) -> None:
        every_s = _LOOK_EVERY_S
        while not self._ended:
            time.sleep(every_s)  # an event that can be waited for costs more than the look
            resident = resident_bytes()
            every_s = _LOOK_CLOSELY_EVERY_S if resident > self._limit * _WATCHED_SHARE else _LOOK_EVERY_S
            try:
                self.look(resident)
            except Exception:  # noqa: BLE001 - whatever it is: without this thread memory would have no bound
                _log.exception("looking for messages that take too much memory failed")
            if resident > self._limit * _WATCHED_SHARE and time.monotonic() >= self._trim_at_s:
                self._trim_at_s = time.monotonic() + _TRIM_EVERY_S
                _trim()


async def watch_lateness(late: Callable[[float], None]) -> None:
    """Tells how late the event loop comes to what is due, every 25 ms, in seconds."""
    loop = asyncio.get_running_loop()
    timer: asyncio.TimerHandle

    def look(wanted_s: float) -> None:
        nonlocal timer
        now_s = loop.time()
        late(max(0.0, now_s - wanted_s))
        timer = loop.call_at(now_s + _LOOK_EVERY_S, look, now_s + _LOOK_EVERY_S)

    timer = loop.call_later(_LOOK_EVERY_S, look, loop.time() + _LOOK_EVERY_S)
    try:
        await loop.create_future()
    finally:
        timer.cancel()


def _trim() -> None:
    """Gives memory that was freed back to the system, which C libraries put off."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
