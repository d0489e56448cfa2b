"""Keeps the process inside its memory where gRPC holds what it has not handed over yet.

gRPC takes a whole message in before anybody is asked, and its Python has no quota for that. So the resident size is
looked at; once half of the limit is taken, the system is asked how much each connection has sent, and the callers that
have sent most without ending their messages are told to come back.
"""

import asyncio
import ctypes
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from gradewire_server.rpc.receiving.receiver import Receiver
from gradewire_server.rpc.receiving.sockets import received_bytes

_log = logging.getLogger(__name__)

_LOOK_EVERY_S: Final = 0.025
_WATCHED_SHARE: Final = 0.5
"""Of the limit; below it nothing but the resident size is looked at."""
_FULL_SHARE: Final = 0.8
"""Above it large messages are refused."""
_ON_THEIR_WAY_DIVISOR: Final = 16
"""Messages that are on their way get this part of the limit."""
_TRIM_EVERY_S: Final = 1.0
_LEAST_BYTES: Final = 256 * 1024
"""A connection that has sent less than this is never at fault."""
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
_STATM: Final = Path("/proc/self/statm")


def resident_bytes() -> int:
    """Memory that this process has now; 0 where the system does not say."""
    try:
        return int(_STATM.read_text().split()[1]) * _PAGE_BYTES
    except OSError:
        return 0


class MemoryGuard:
    """Looks again and again; `run` ends when it is cancelled.

    Args:
        receiver: Knows the calls that wait for messages.
        limit_bytes: Of the process.
        port: That callers connect to.
        shed: Told how many calls were ended.
        late: Told how late the event loop was each time, in seconds.
    """

    def __init__(
        self,
        receiver: Receiver,
        limit_bytes: int,
        port: int,
        *,
        shed: Callable[[int], None],
        late: Callable[[float], None],
    ) -> None:
        self._receiver = receiver
        self._limit = limit_bytes
        self._port = port
        self._shed = shed
        self._late = late
        self._trim_at_s = 0.0
        self._trimming: asyncio.Future[None] | None = None

    async def run(self) -> None:
        """Looks every 25 ms; costs about 20 µs where all is well."""
        loop = asyncio.get_running_loop()
        while True:
            wanted_s = loop.time() + _LOOK_EVERY_S
            await asyncio.sleep(_LOOK_EVERY_S)
            self._late(max(0.0, loop.time() - wanted_s))
            self.look(resident_bytes())

    def look(self, resident: int) -> None:
        """Acts on a resident size."""
        self._receiver.memory_is_short = resident > self._limit * _FULL_SHARE
        if resident < self._limit * _WATCHED_SHARE:
            return
        self.shed_largest(received_bytes(self._port))
        now_s = asyncio.get_running_loop().time()
        if now_s >= self._trim_at_s and (self._trimming is None or self._trimming.done()):
            self._trim_at_s = now_s + _TRIM_EVERY_S
            self._trimming = asyncio.get_running_loop().run_in_executor(None, _trim)

    def shed_largest(self, received: dict[str, int]) -> None:
        """Ends calls of the connections that have sent most until the rest is within its part of the limit.

        Args:
            received: Bytes by peer.
        """
        delivered = self._receiver.delivered
        for gone in delivered.keys() - received.keys():
            del delivered[gone]
        waiting = {peer: count - delivered.get(peer, 0) for peer, count in received.items()}
        waiting = {peer: count for peer, count in waiting.items() if count > _LEAST_BYTES}
        total = sum(waiting.values())
        ended = 0
        for peer in sorted(waiting, key=waiting.__getitem__, reverse=True):
            if total <= self._limit // _ON_THEIR_WAY_DIVISOR:
                break
            count = self._receiver.shed(peer)
            total -= waiting[peer]
            if count:
                ended += count
                delivered[peer] = received[peer]
        if ended:
            self._shed(ended)
            _log.warning("%d calls were ended: their messages were on their way and took too much memory", ended)


def _trim() -> None:
    """Gives memory that was freed back to the system, which C libraries put off."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
