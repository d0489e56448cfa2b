"""Waiting in turns: caller by caller by weight, and within a caller source by source.

Stride scheduling: Waldspurger and Weihl 1995.
"""

from asyncio import Future
from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass, field

from gradewire_server.domain.caller import Caller


@dataclass(slots=True, eq=False)
class Waiter:
    """Somebody who waits for so many tokens."""

    tokens: float
    granted: Future[None]


@dataclass(slots=True)
class _Source:
    key: Hashable
    finish: float
    waiters: deque[Waiter] = field(default_factory=deque)


@dataclass(slots=True)
class _Queue:
    caller: Caller
    finish: float
    clock: float = 0.0
    sources: dict[Hashable, _Source] = field(default_factory=dict)


class FairWaiting:
    """Waiters of all callers; the next one is of the caller that has had least for its weight."""

    def __init__(self) -> None:
        self._callers: dict[str, _Queue] = {}
        self._clock = 0.0
        self.tokens = 0.0

    def __bool__(self) -> bool:
        return bool(self._callers)

    @property
    def callers(self) -> int:
        """How many callers wait."""
        return len(self._callers)

    def add(self, caller: Caller, source: Hashable, waiter: Waiter) -> None:
        """Appends a waiter to those of its source (a stream, a call)."""
        queue = self._callers.get(caller.key)
        if queue is None:
            queue = self._callers[caller.key] = _Queue(caller, self._clock)
        line = queue.sources.get(source)
        if line is None:
            line = queue.sources[source] = _Source(source, queue.clock)
        line.waiters.append(waiter)
        self.tokens += waiter.tokens

    def peek(self) -> Waiter | None:
        """Who is next; those who have gone away are dropped."""
        while self._callers:
            queue, line = self._next()
            waiter = line.waiters[0]
            if not waiter.granted.cancelled():
                return waiter
            self._drop(queue, line)
        return None

    def pop(self) -> None:
        """Takes the next one out, and counts its tokens against its source and its caller."""
        queue, line = self._next()
        tokens = line.waiters[0].tokens
        self._clock, queue.clock = queue.finish, line.finish
        queue.finish += tokens / queue.caller.weight
        line.finish += tokens
        self._drop(queue, line)

    def _next(self) -> tuple[_Queue, _Source]:
        queue = min(self._callers.values(), key=lambda each: each.finish)
        return queue, min(queue.sources.values(), key=lambda each: each.finish)

    def _drop(self, queue: _Queue, line: _Source) -> None:
        self.tokens -= line.waiters.popleft().tokens
        if not line.waiters:
            del queue.sources[line.key]
        if not queue.sources:
            del self._callers[queue.caller.key]
