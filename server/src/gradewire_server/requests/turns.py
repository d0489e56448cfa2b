"""Permits for what may be in flight, callers' shares of it, and turns: who goes first where several wait."""

import asyncio
import time
from asyncio import Future
from collections import deque
from collections.abc import AsyncIterator, Callable, Hashable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Final

from gradewire_server.domain.caller import Caller, Lane
from gradewire_server.requests.errors import OverloadedError
from gradewire_server.requests.load import EncoderBacklog, LoopBacklog

_NO_PERMIT_RETRY_S: Final = 0.5
"""Hint where permits are used up: others give theirs back within about this time."""
_PARTS_OF_LIMIT: Final = 4
"""Parts of the bytes of slowed messages; one tenant holds one part at the most, or one message."""


class Permits:
    """Counts one kind of thing in flight; used on one event loop only.

    What is larger than the whole limit is let in when nothing else is in flight: otherwise it could never be served.
    `taken` are the permits in flight now.
    """

    def __init__(self, limit: int, unit: str) -> None:
        self.limit = limit
        self._unit = unit
        self.taken = 0
        self._waiting: deque[tuple[asyncio.Future[None], int]] = deque()

    def take(self, count: int) -> None:
        """Takes `count` permits at once, which `release` gives back; errors as `hold`."""
        taken = self.taken
        if taken and taken + count > self.limit:
            raise OverloadedError(
                f"{taken} {self._unit} are in flight, {count} more exceed the limit of {self.limit}; come back later",
                retry_after_s=_NO_PERMIT_RETRY_S,
            )
        self.taken = taken + count

    @contextmanager
    def hold(self, count: int) -> Iterator[None]:
        """Takes `count` permits for the block, at once; raises OverloadedError where there are not enough."""
        self.take(count)
        try:
            yield
        finally:
            self.release(count)

    @asynccontextmanager
    async def wait_for(self, count: int) -> AsyncIterator[None]:
        """Waits for `count` permits, and holds them for the block."""
        await self.acquire(count)
        try:
            yield
        finally:
            self.release(count)

    async def acquire(self, count: int) -> None:
        """Waits for permits, first come first served; for streams, which are slowed down and not turned away."""
        if not self._waiting and self._fits(count):
            self.taken += count
            return
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((granted, count))
        try:
            await granted
        except asyncio.CancelledError:
            if not granted.cancelled():  # cancelled after the permits were handed over
                self.release(count)
            self._grant()
            raise

    def release(self, count: int) -> None:
        """Gives permits back, and hands them to those that wait."""
        self.taken -= count
        if self._waiting:
            self._grant()

    def _fits(self, count: int) -> bool:
        return self.taken == 0 or self.taken + count <= self.limit

    def _grant(self) -> None:
        while self._waiting:
            granted, count = self._waiting[0]
            if granted.cancelled():
                self._waiting.popleft()
            elif self._fits(count):
                self._waiting.popleft()
                self.taken += count
                granted.set_result(None)
            else:
                return


class SlowedMessages:
    """Messages that were received and wait for a quota. Lives on one event loop."""

    def __init__(self, limit_bytes: int) -> None:
        self._all = Permits(limit_bytes, "bytes of messages that wait for quotas")
        self._share_bytes = max(1, limit_bytes // _PARTS_OF_LIMIT)
        self._by_tenant: dict[str, Permits] = {}

    @property
    def taken(self) -> int:
        """Bytes that wait now."""
        return self._all.taken

    @contextmanager
    def hold(self, tenant: str, size_bytes: int) -> Iterator[None]:
        """Hold a tenant's message for the block; raise OverloadedError where there is no room for it."""
        own = self._by_tenant.get(tenant)
        if own is None:
            own = self._by_tenant[tenant] = Permits(self._share_bytes, "bytes of messages that wait for the quota")
        try:
            with own.hold(size_bytes), self._all.hold(size_bytes):
                yield
        finally:
            if not own.taken:
                self._by_tenant.pop(tenant, None)


_MIN_PARTS: Final = 2
"""Parts that are let in however large they are: while one's texts are computed, another one is read."""

_ACTIVE_S: Final = 1.0
"""A caller that was let in or refused so lately keeps its share free, also while it has nothing in work."""
_FORGET_EVERY_S: Final = 0.1
_FEW: Final = 0.5
"""Part of its share of all requests in work; a caller with fewer asks for less than it may."""


@dataclass(slots=True, eq=False)
class Waiter:
    """Somebody who waits for so many tokens, and is `counted` among those who wait."""

    tokens: float
    granted: Future[None]
    counted: bool = True


@dataclass(slots=True)
class _Line:
    """Waiters of a source, or the lines of a caller, or those of all callers.

    Attributes:
        weight: Of its turns beside other lines.
        finish: What it has had for its weight; the next turn is of the line that has had least.
        clock: The least that one of its own lines has had; a new one begins there.
    """

    weight: float = 1.0
    finish: float = 0.0
    clock: float = 0.0
    lines: dict[Hashable, "_Line"] = field(default_factory=dict)
    waiters: deque[Waiter] = field(default_factory=deque)

    def line(self, key: Hashable, weight: float = 1.0) -> "_Line":
        """Return one of its lines, which is made where there is none."""
        found = self.lines.get(key)
        if found is None:
            found = self.lines[key] = _Line(weight, self.clock)
        return found

    def next(self) -> Hashable:
        """Return the key of the line whose turn is next."""
        return min(self.lines.items(), key=lambda each: each[1].finish)[0]


class FairWaiting:
    """Waiters of all callers; the next one is of the caller that has had least for its weight."""

    def __init__(self) -> None:
        self._all = _Line()
        self.tokens = 0.0

    def __bool__(self) -> bool:
        return bool(self._all.lines)

    @property
    def callers(self) -> int:
        """Callers that wait."""
        return len(self._all.lines)

    def add(self, caller: Caller, source: Hashable, waiter: Waiter) -> None:
        """Appends a waiter to those of its source (a stream, a call)."""
        self._all.line(caller.key, caller.weight).line(source).waiters.append(waiter)
        self.tokens += waiter.tokens

    def peek(self) -> Waiter | None:
        """Return the next waiter; those who have gone away are dropped."""
        while self._all.lines:
            caller, source = self._next()
            waiter = self._all.lines[caller].lines[source].waiters[0]
            if not waiter.granted.cancelled():
                return waiter
            self.drop_gone()
        return None

    def pop(self) -> None:
        """Takes the next one out, and counts its tokens against its source and its caller."""
        caller, source = self._next()
        queue = self._all.lines[caller]
        line = queue.lines[source]
        tokens = line.waiters.popleft().tokens
        for whole, part in ((self._all, queue), (queue, line)):
            whole.clock = part.finish
            part.finish += tokens / part.weight
        self.tokens -= tokens
        self._tidy(caller, source)

    def _next(self) -> tuple[Hashable, Hashable]:
        caller = self._all.next()
        return caller, self._all.lines[caller].next()

    def drop_gone(self) -> None:
        """Drop all who have gone away: where one has, a thousand may have, and one by one would take too long."""
        for caller, queue in list(self._all.lines.items()):
            for source, line in list(queue.lines.items()):
                for waiter in line.waiters:
                    waiter.counted = not waiter.granted.cancelled()
                    self.tokens -= 0.0 if waiter.counted else waiter.tokens
                line.waiters = deque(waiter for waiter in line.waiters if waiter.counted)
                self._tidy(caller, source)

    def _tidy(self, caller: Hashable, source: Hashable) -> None:
        queue = self._all.lines[caller]
        if not queue.lines[source].waiters:
            del queue.lines[source]
        if not queue.lines:
            del self._all.lines[caller]
        if not self._all.lines:
            self.tokens = 0.0  # sums of fractions never quite come back to it


class BulkTurns:
    """The line of bulk work that waits for its turns. Lives on one event loop.

    While the event loop is behind, one part is in work at a time.
    """

    def __init__(self, encoders: EncoderBacklog, loop: LoopBacklog) -> None:
        self._encoders = encoders
        self._loop = loop
        self.waiting = FairWaiting()

    async def take(self, caller: Caller, source: Hashable, tokens: float) -> None:
        """Waits until a part of so many tokens has its turn, and counts it; work that leaves calls `grant` then."""
        if not self.waiting and self._has_room(tokens):
            self._encoders.enter(Lane.BULK, tokens)
            return
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiter = Waiter(tokens, granted)
        self.waiting.add(caller, source, waiter)
        try:
            await granted
        except asyncio.CancelledError:
            if granted.cancelled():
                if waiter.counted:
                    self.waiting.drop_gone()
            else:  # cancelled after the turn was given
                self._encoders.leave(Lane.BULK, tokens)
                self.grant()
            raise

    def grant(self) -> None:
        """Gives turns to those for whom there is room now."""
        while (waiter := self.waiting.peek()) is not None and self._has_room(waiter.tokens):
            self.waiting.pop()
            self._encoders.enter(Lane.BULK, waiter.tokens)
            waiter.granted.set_result(None)

    def _has_room(self, tokens: float) -> bool:
        if self._loop.is_late:
            return not self._encoders.parts[Lane.BULK]
        return self._encoders.parts[Lane.BULK] < _MIN_PARTS or self._encoders.fits_bulk(tokens)


@dataclass(slots=True, eq=False)
class _Share:
    weight: float
    seen_s: float
    requests: int = 0
    tokens: float = 0.0
    promised_s: float = 0.0


class CallerShares:
    """Small work in the server, caller by caller. Lives on one event loop."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._shares: dict[str, _Share] = {}
        self._weights = 0.0
        self._forgot_s = clock()

    def enter(self, caller: Caller, tokens: float) -> None:
        """Work of a caller was let in."""
        share = self._of(caller)
        share.requests += 1
        share.tokens += tokens

    def grow(self, caller: Caller, tokens: float) -> None:
        """Work that was let in costs so much more than was thought."""
        self._of(caller).tokens += tokens

    def leave(self, caller: Caller, tokens: float) -> None:
        """Work is done that had cost so much in all."""
        share = self._of(caller)
        share.requests -= 1
        share.tokens = max(0.0, share.tokens - tokens) if share.requests else 0.0

    def has_room(self, caller: Caller, tokens: float, in_work_tokens: float, allowed_tokens: float) -> bool:
        """Return whether a caller would still have no more than its share of what is allowed to all together.

        A caller alone has all of it. Beside others it has what its weight gives it, whatever the others ask for. One
        that has nothing in work is let in up to twice of what is allowed: where callers are many, their shares are
        smaller than a request.
        """
        share = self._of(caller)
        if not share.requests and in_work_tokens <= 2 * allowed_tokens:
            return True
        return share.tokens + tokens <= allowed_tokens * share.weight / self._weights

    def has_few(self, caller: Caller, requests: int) -> bool:
        """Return whether a caller has less than half of its share of all requests in work.

        False for one that is alone.
        """
        share = self._of(caller)
        return share.requests < _FEW * requests * share.weight / self._weights

    def promise(self, caller: Caller, work_s: float, longest_s: float) -> float:
        """Return the seconds after which a refused caller has its turn, behind earlier promises to it.

        So those who are refused do not all come back at once. `work_s` is what its request would take the whole server.
        """
        share = self._of(caller)
        after_s = max(0.0, share.promised_s - share.seen_s) + work_s * self._weights / share.weight
        share.promised_s = share.seen_s + min(after_s, longest_s)
        return share.promised_s - share.seen_s

    def _of(self, caller: Caller) -> _Share:
        now_s = self._clock()
        share = self._shares.get(caller.key)
        if share is None:
            share = self._shares[caller.key] = _Share(caller.weight, now_s)
            self._weights += caller.weight
        elif share.weight != caller.weight:  # the tokens file has changed
            self._weights += caller.weight - share.weight
            share.weight = caller.weight
        share.seen_s = now_s
        if now_s - self._forgot_s >= _FORGET_EVERY_S:
            self._forgot_s = now_s
            self._forget(now_s - _ACTIVE_S)
        return share

    def _forget(self, seen_before_s: float) -> None:
        """Drops callers that have gone."""
        self._shares = {key: each for key, each in self._shares.items() if each.requests or each.seen_s > seen_before_s}
        self._weights = sum(each.weight for each in self._shares.values())
