"""Receives the messages of all calls; knows which are on their way, and can end those."""

import asyncio
import math
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
_CLOCK_S: Final = 0.001
"""The loop calls a timer up to so much before its time."""


@dataclass(slots=True, eq=False)
class _Expected:
    """A message that is waited for.

    Attributes:
        task: Waits for it.
        peer: Where it comes from.
        within_s: How long it may take.
        due_s: When that is over, by the loop's clock.
        in_work: Asked then.
        ended: Whether the task was told to wait no longer.
        shed: Whether that was for want of memory.
    """

    task: "asyncio.Task[object]"
    peer: str
    within_s: float
    due_s: float
    in_work: Callable[[], bool]
    ended: bool = False
    shed: bool = False

    def end(self) -> None:
        """Has the task wait no longer."""
        self.ended = True
        self.task.cancel()


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
        self._expected: set[_Expected] = set()
        self._look_at_s = math.inf
        self._looking: asyncio.TimerHandle | None = None

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
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("messages are received in tasks")
        loop = task.get_loop()
        expected = _Expected(task, peer, within_s, loop.time() + within_s, in_work)
        cancelling = task.cancelling()
        self._expected.add(expected)
        if expected.due_s < self._look_at_s:
            self._look_then(loop, expected.due_s)
        try:
            data = await anext(messages, None)
        except asyncio.CancelledError:
            # As `asyncio.timeout` does it, without a timer for each message: nearly all are there at once.
            if not expected.ended or task.uncancel() > cancelling:
                raise
            if expected.shed:
                raise _memory_is_short() from None
            raise TimeoutError from None
        finally:
            self._expected.discard(expected)
            del expected, task  # an error's traceback keeps this frame, and a task its error: both were a cycle
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

    def waiting(self) -> set[str]:
        """Connections of which a call waits for a message; from any thread."""
        return {each.peer for each in list(self._expected)}

    def shed(self, peer: str) -> int:
        """Ends the calls of a connection that wait for a message; returns how many."""
        found = [each for each in self._expected if each.peer == peer and not each.ended]
        for each in found:
            each.shed = True
            each.end()
        return len(found)

    def _look_then(self, loop: asyncio.AbstractEventLoop, at_s: float) -> None:
        if self._looking is not None:
            self._looking.cancel()
        self._look_at_s = at_s
        self._looking = loop.call_at(at_s, self._look, loop)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        """Ends those that have waited too long; one look does for all that begin to wait before the next is due."""
        self._looking, self._look_at_s = None, math.inf
        now_s = loop.time() + _CLOCK_S
        for each in self._expected:
            if each.ended or each.due_s > now_s:
                continue
            if each.in_work():
                each.due_s = now_s + each.within_s
            else:
                each.end()
        waiting = [each.due_s for each in self._expected if not each.ended]
        if waiting:
            self._look_then(loop, min(waiting))


def _memory_is_short() -> OverloadedError:
    return OverloadedError(
        "the server's memory is taken by messages that are on their way; come back later, or send smaller messages",
        retry_after_s=_RETRY_AFTER_S,
    )
