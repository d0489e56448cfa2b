"""Receives the messages of all calls; knows which are on their way, and can end those."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any, Final, cast

from gradewire_server.requests.errors import OverloadedError

_CALL_OVERHEAD_BYTES: Final = 128
"""Headers and frames around a message."""
_MAX_PEERS: Final = 16_384
_SMALL_BYTES: Final = 64 * 1024
"""A message of this size is taken even while memory is short."""
_RETRY_AFTER_S: Final = 1.0


def never() -> bool:
    """Nothing else is in work."""
    return False


@dataclass(slots=True, eq=False)
class _Expected:
    """A message that is waited for.

    Attributes:
        task: Waits for it.
        peer: Address of the connection.
        within_s: How long it may take.
        in_work: See `Receiver.receive`.
        due_s: When that time is over, by the loop's clock.
        ends: Raised in the task's place once it was ended.
    """

    task: asyncio.Task[Any]
    peer: str
    within_s: float
    in_work: Callable[[], bool]
    due_s: float
    ends: Exception | None = None

    def end(self, error: Exception) -> None:
        """Has its task stop waiting."""
        self.ends = error
        self.task.cancel()


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
        # One for all: nearly every message is there before a timer of its own would be worth its while.
        self._timer: asyncio.TimerHandle | None = None

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
        task = cast("asyncio.Task[Any]", asyncio.current_task())
        expected = _Expected(task, peer, within_s, in_work, loop.time() + within_s)
        self._expected.add(expected)
        if self._timer is None or self._timer.when() > expected.due_s:
            self._look_at(loop, expected.due_s)
        try:
            data = await anext(messages, None)
        except asyncio.CancelledError:
            if expected.ends is None or task.uncancel() > 0:
                raise
            raise expected.ends from None
        finally:
            self._expected.discard(expected)
        if data is not None:
            self._take(peer, len(data))
        return data

    def shed(self, peer: str) -> int:
        """Ends the calls of a connection that wait for a message; returns how many."""
        waiting = [each for each in self._expected if each.peer == peer and each.ends is None]
        for each in waiting:
            each.end(_memory_is_short())
        return len(waiting)

    def _take(self, peer: str, size_bytes: int) -> None:
        if len(self.delivered) >= _MAX_PEERS and peer not in self.delivered:
            # Of a connection that is gone, most likely; one that is not counts as having sent more than it did.
            self.delivered.pop(next(iter(self.delivered)))
        self.delivered[peer] = self.delivered.pop(peer, 0) + size_bytes + _CALL_OVERHEAD_BYTES
        if self.memory_is_short and size_bytes > _SMALL_BYTES:
            raise _memory_is_short()

    def _look_at(self, loop: asyncio.AbstractEventLoop, due_s: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = loop.call_at(due_s, self._look, loop)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        """Ends what is due, unless something is in work, and looks again when the next one is."""
        self._timer = None
        now_s = loop.time()
        for each in [each for each in self._expected if each.due_s <= now_s and each.ends is None]:
            if each.in_work():
                each.due_s = now_s + each.within_s
            else:
                each.end(TimeoutError())
        waiting = [each.due_s for each in self._expected if each.ends is None]
        if waiting:
            self._look_at(loop, min(waiting))


def _memory_is_short() -> OverloadedError:
    return OverloadedError(
        "the server's memory is taken by messages that are on their way; come back later, or send smaller messages",
        retry_after_s=_RETRY_AFTER_S,
    )
