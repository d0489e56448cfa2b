"""Receives the messages of all calls; knows which are on their way, and can end those."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Final

from gradewire_server.requests.errors import OverloadedError

_CALL_OVERHEAD_BYTES: Final = 128
"""Headers and frames around a message."""
_MAX_PEERS: Final = 16_384
_SMALL_BYTES: Final = 64 * 1024
"""A message of this size is taken even while memory is short."""
_RETRY_AFTER_S: Final = 1.0


@dataclass(slots=True, eq=False)
class _Expected:
    """A message that is waited for."""

    limit: asyncio.Timeout | None = None
    timer: asyncio.TimerHandle | None = None
    shed: bool = False


def never() -> bool:
    """Nothing else is in work."""
    return False


class Receiver:
    """Lives on one event loop.

    Attributes:
        memory_is_short: Large messages are refused.
        delivered: Bytes of each connection that were handed over, by the peer's address.
    """

    def __init__(self) -> None:
        self.memory_is_short = False
        self.delivered: dict[str, int] = {}
        self._expected: dict[str, set[_Expected]] = {}

    async def receive(
        self, messages: AsyncIterator[bytes], peer: str, *, within_s: float, in_work: Callable[[], bool] = never
    ) -> bytes | None:
        """The next message of a call; None at the end of its messages.

        Args:
            messages: Those of the call.
            peer: Address of the connection.
            within_s: How long it may take.
            in_work: Asked then; while it says so, that time begins again.

        Raises:
            TimeoutError: It did not come in time.
            OverloadedError: Memory is short.
        """
        loop = asyncio.get_running_loop()
        expected = _Expected()

        def look() -> None:
            if in_work():
                expected.timer = loop.call_later(within_s, look)
            elif expected.limit is not None:
                expected.limit.reschedule(loop.time())

        expected.timer = loop.call_later(within_s, look)
        others = self._expected.setdefault(peer, set())
        others.add(expected)
        try:
            async with asyncio.timeout(None) as expected.limit:
                data = await anext(messages, None)
        except TimeoutError:
            if expected.shed:
                raise _memory_is_short() from None
            raise
        finally:
            if expected.timer is not None:
                expected.timer.cancel()
            others.discard(expected)
            if not others:
                self._expected.pop(peer, None)
        if data is not None:
            self._take(peer, len(data))
        return data

    def _take(self, peer: str, size_bytes: int) -> None:
        if len(self.delivered) >= _MAX_PEERS and peer not in self.delivered:
            # Of a connection that is gone, most likely; one that is not counts as having sent more than it did.
            self.delivered.pop(next(iter(self.delivered)))
        self.delivered[peer] = self.delivered.pop(peer, 0) + size_bytes + _CALL_OVERHEAD_BYTES
        if self.memory_is_short and size_bytes > _SMALL_BYTES:
            raise _memory_is_short()

    def shed(self, peer: str) -> int:
        """Ends the calls of a connection that wait for a message; returns how many."""
        loop = asyncio.get_running_loop()
        count = 0
        for expected in self._expected.get(peer, ()):
            if expected.limit is not None and not expected.shed:
                expected.shed = True
                expected.limit.reschedule(loop.time())
                count += 1
        return count


def _memory_is_short() -> OverloadedError:
    return OverloadedError(
        "the server's memory is taken by messages that are on their way; come back later, or send smaller messages",
        retry_after_s=_RETRY_AFTER_S,
    )
