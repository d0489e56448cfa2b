"""Permits for requests, fair shares for callers, and the order of waiting work."""

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
"""The retry delay if no permit is left."""
_PARTS_OF_LIMIT: Final = 4
"""A tenant's limit for slowed messages is the limit for all tenants divided by this number."""


class Permits:
    """A limited number of permits, for one event loop. `taken` is the number of permits in use.

    If a request needs more permits than the limit, it is granted when no permit is in use.
    """

    def __init__(self, limit: int, unit: str) -> None:
        self.limit = limit
        self._unit = unit
        self.taken = 0
        self._waiting: deque[tuple[asyncio.Future[None], int]] = deque()

    def take(self, count: int) -> None:
        """Take `count` permits without waiting, or raise OverloadedError if too few are left. Call `release` later."""
        taken = self.taken
        if taken and taken + count > self.limit:
            raise OverloadedError(
                f"{taken} {self._unit} are in flight; {count} more would exceed the limit of {self.limit}. "
                "Try again later",
                retry_after_s=_NO_PERMIT_RETRY_S,
            )
        self.taken = taken + count

    @contextmanager
    def hold(self, count: int) -> Iterator[None]:
        """Hold `count` permits until the context exits, or raise OverloadedError if too few are left."""
        self.take(count)
        try:
            yield
        finally:
            self.release(count)

    @asynccontextmanager
    async def wait_for(self, count: int) -> AsyncIterator[None]:
        """Wait for `count` permits, then hold the permits until the context exits."""
        await self.acquire(count)
        try:
            yield
        finally:
            self.release(count)

    async def acquire(self, count: int) -> None:
        """Wait for `count` permits, in the order of the calls. Call `release` later."""
        if not self._waiting and self._fits(count):
            self.taken += count
            return
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((granted, count))
        try:
            await granted
        except asyncio.CancelledError:
            if not granted.cancelled():  # the permits were granted before the cancellation
                self.release(count)
            self._grant()
            raise

    def release(self, count: int) -> None:
        """Release `count` permits."""
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
    """The received messages that wait for a tenant's quota, on one event loop."""

    def __init__(self, limit_bytes: int) -> None:
        self._all = Permits(limit_bytes, "bytes of messages waiting for quotas")
        self._share_bytes = max(1, limit_bytes // _PARTS_OF_LIMIT)
        self._by_tenant: dict[str, Permits] = {}

    @property
    def taken(self) -> int:
        """The total size of the waiting messages in bytes."""
        return self._all.taken

    @contextmanager
    def hold(self, tenant: str, size_bytes: int) -> Iterator[None]:
        """Count a message as waiting until the context exits, or raise OverloadedError if a limit is exceeded."""
        own = self._by_tenant.get(tenant)
        if own is None:
            own = self._by_tenant[tenant] = Permits(self._share_bytes, "bytes of messages waiting for a quota")
        try:
            with own.hold(size_bytes), self._all.hold(size_bytes):
                yield
        finally:
            if not own.taken:
                self._by_tenant.pop(tenant, None)


_MIN_PARTS: Final = 2
"""The number of bulk parts that may always run, even if they are large."""

_ACTIVE_S: Final = 1.0
"""A caller is active until this many seconds after the caller's last request."""
_FORGET_EVERY_S: Final = 0.1
_FEW: Final = 0.5
"""See `CallerShares.has_few`."""


@dataclass(slots=True, eq=False)
class Waiter:
    """Bulk work that waits for its turn. `counted` is True while `FairWaiting.tokens` includes its tokens."""

    tokens: float
    granted: Future[None]
    counted: bool = True


@dataclass(slots=True)
class _Line:
    """A node in a tree of queues. The root contains a line for each caller, with a line for each source.

    Attributes:
        finish: The tokens granted to this line, divided by its weight. The sibling with the lowest `finish` is next.
        clock: The `finish` value with which new child lines start.
    """

    weight: float = 1.0
    finish: float = 0.0
    clock: float = 0.0
    lines: dict[Hashable, "_Line"] = field(default_factory=dict)
    waiters: deque[Waiter] = field(default_factory=deque)

    def get_or_create(self, key: Hashable, weight: float = 1.0) -> "_Line":
        found = self.lines.get(key)
        if found is None:
            found = self.lines[key] = _Line(weight, self.clock)
        return found

    def next_key(self) -> Hashable:
        return min(self.lines.items(), key=lambda each: each[1].finish)[0]


class FairWaiting:
    """All waiters, in a fair order. Callers get tokens in proportion to their weights."""

    def __init__(self) -> None:
        self._all = _Line()
        self.tokens = 0.0

    def __bool__(self) -> bool:
        return bool(self._all.lines)

    @property
    def callers(self) -> int:
        """The number of callers with waiting work."""
        return len(self._all.lines)

    def add(self, caller: Caller, source: Hashable, waiter: Waiter) -> None:
        """Append a waiter to the line for `source`, a stream or call."""
        self._all.get_or_create(caller.key, caller.weight).get_or_create(source).waiters.append(waiter)
        self.tokens += waiter.tokens

    def peek(self) -> Waiter | None:
        """Return the next waiter, or None."""
        while self._all.lines:
            caller, source = self._next()
            waiter = self._all.lines[caller].lines[source].waiters[0]
            if not waiter.granted.cancelled():
                return waiter
            self.drop_gone()
        return None

    def pop(self) -> None:
        """Remove the next waiter, and charge its tokens to its source and caller."""
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
        caller = self._all.next_key()
        return caller, self._all.lines[caller].next_key()

    def drop_gone(self) -> None:
        """Drop all cancelled waiters."""
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
            self.tokens = 0.0  # rounding errors would remain


class BulkTurns:
    """The turns of bulk work, on one event loop."""

    def __init__(self, encoders: EncoderBacklog, loop: LoopBacklog) -> None:
        self._encoders = encoders
        self._loop = loop
        self.waiting = FairWaiting()

    async def take(self, caller: Caller, source: Hashable, tokens: float) -> None:
        """Wait for a part's turn, then count the part's tokens. The owner must call `grant` whenever work has ended."""
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
            else:  # the turn was granted before the cancellation
                self._encoders.leave(Lane.BULK, tokens)
                self.grant()
            raise

    def grant(self) -> None:
        """Let waiting work start while the encoders can accept more bulk work."""
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
    """Each caller's small requests in progress, on one event loop. Shares are in proportion to weights."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._shares: dict[str, _Share] = {}
        self._weights = 0.0
        self._forgot_s = clock()

    def enter(self, caller: Caller, tokens: float) -> None:
        """Record that the caller's request was admitted."""
        share = self._of(caller)
        share.requests += 1
        share.tokens += tokens

    def grow(self, caller: Caller, tokens: float) -> None:
        """Add `tokens` to the cost of admitted work."""
        self._of(caller).tokens += tokens

    def leave(self, caller: Caller, tokens: float) -> None:
        """Record that a request has ended. `tokens` is the request's total cost."""
        share = self._of(caller)
        share.requests -= 1
        share.tokens = max(0.0, share.tokens - tokens) if share.requests else 0.0

    def has_room(self, caller: Caller, tokens: float, in_work_tokens: float, allowed_tokens: float) -> bool:
        """Return True if the caller stays within its share of `allowed_tokens` after adding `tokens`.

        A caller without requests in progress may exceed the share if `in_work_tokens`, the tokens of all callers, are
        at most twice `allowed_tokens`.
        """
        share = self._of(caller)
        if not share.requests and in_work_tokens <= 2 * allowed_tokens:
            return True
        return share.tokens + tokens <= allowed_tokens * share.weight / self._weights

    def has_few(self, caller: Caller, requests: int) -> bool:
        """Return True if the caller has less than half of its fair share of all `requests` in progress."""
        share = self._of(caller)
        return share.requests < _FEW * requests * share.weight / self._weights

    def promise(self, caller: Caller, work_s: float, longest_s: float) -> float:
        """Return how many seconds a refused caller should wait, up to `longest_s`.

        Delays increase with each refusal. `work_s` is the request's duration on an idle server.
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
        self._shares = {key: each for key, each in self._shares.items() if each.requests or each.seen_s > seen_before_s}
        self._weights = sum(each.weight for each in self._shares.values())
