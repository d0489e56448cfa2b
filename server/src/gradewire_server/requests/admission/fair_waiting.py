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

    def remove(self, caller: Caller, source: Hashable, waiter: Waiter) -> None:
        """Takes out one that has gone away before its turn came, if it is still there."""
        queue = self._callers.get(caller.key)
        line = queue and queue.sources.get(source)
        if queue and line and waiter in line.waiters:
            line.waiters.remove(waiter)
            self.tokens -= waiter.tokens
            self._tidy(queue, line)

    def peek(self) -> Waiter | None:
        """Who is next; those who have gone away are dropped."""
        while self._callers:
            waiter = self._next()[1].waiters[0]
            if not waiter.granted.cancelled():
                return waiter
            self._sweep()  # where one has gone, a thousand may have: one by one they would take too long
        return None

    def pop(self) -> None:
        """Takes the next one out, and counts its tokens against its source and its caller."""
        queue, line = self._next()
        tokens = line.waiters[0].tokens
        self._clock, queue.clock = queue.finish, line.finish
        queue.finish += tokens / queue.caller.weight
        line.finish += tokens
        line.waiters.popleft()
        self.tokens -= tokens
        self._tidy(queue, line)

    def _next(self) -> tuple[_Queue, _Source]:
        queue = min(self._callers.values(), key=lambda each: each.finish)
        return queue, min(queue.sources.values(), key=lambda each: each.finish)

    def _sweep(self) -> None:
        for queue in list(self._callers.values()):
            for line in list(queue.sources.values()):
                here = deque(each for each in line.waiters if not each.granted.cancelled())
                self.tokens -= sum(each.tokens for each in line.waiters) - sum(each.tokens for each in here)
                line.waiters = here
                self._tidy(queue, line)

    def _tidy(self, queue: _Queue, line: _Source) -> None:
        if not line.waiters:
            del queue.sources[line.key]
        if not queue.sources:
            self._callers.pop(queue.caller.key, None)
        if not self._callers:
            self.tokens = 0.0  # sums of fractions never quite come back to it
