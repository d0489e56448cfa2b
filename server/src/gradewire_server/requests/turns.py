"""Permits for requests in flight, callers' shares of them, and the order in which waiting work gets its turn."""

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
"""Retry delay when permits are used up. Other requests release their permits within about this time."""
_PARTS_OF_LIMIT: Final = 4
"""Number of equal parts of the limit for slowed messages. A tenant uses at most one part, or one larger message."""


class Permits:
    """A limited number of permits, for one event loop. `taken` is the number in use.

    A request for more permits than the whole limit is granted when no permit is in use. Otherwise it could never run.
    """

    def __init__(self, limit: int, unit: str) -> None:
        self.limit = limit
        self._unit = unit
        self.taken = 0
        self._waiting: deque[tuple[asyncio.Future[None], int]] = deque()

    def take(self, count: int) -> None:
        """Take `count` permits without waiting; raise OverloadedError if too few are left. Call `release` later."""
        taken = self.taken
        if taken and taken + count > self.limit:
            raise OverloadedError(
                f"{taken} {self._unit} are in flight; {count} more would exceed the limit of {self.limit}. Retry later",
                retry_after_s=_NO_PERMIT_RETRY_S,
            )
        self.taken = taken + count

    @contextmanager
    def hold(self, count: int) -> Iterator[None]:
        """Take `count` permits for the block without waiting; raise OverloadedError if too few are left."""
        self.take(count)
        try:
            yield
        finally:
            self.release(count)

    @asynccontextmanager
    async def wait_for(self, count: int) -> AsyncIterator[None]:
        """Wait for `count` permits, and hold them for the block."""
        await self.acquire(count)
        try:
            yield
        finally:
            self.release(count)

    async def acquire(self, count: int) -> None:
        """Wait for permits, first come, first served. Streams wait like this, so they slow down instead of failing."""
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
        """Release permits, and grant them to waiting requests."""
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
    """Received messages that wait for their tenant's quota, on one event loop."""

    def __init__(self, limit_bytes: int) -> None:
        self._all = Permits(limit_bytes, "bytes of messages waiting for quotas")
        self._share_bytes = max(1, limit_bytes // _PARTS_OF_LIMIT)
        self._by_tenant: dict[str, Permits] = {}

    @property
    def taken(self) -> int:
        """Total bytes of the waiting messages."""
        return self._all.taken

    @contextmanager
    def hold(self, tenant: str, size_bytes: int) -> Iterator[None]:
        """Count a tenant's message as waiting in the block; raise OverloadedError if it exceeds a limit."""
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
"""Number of parts of bulk work that may always run, whatever their size. One is read while another is computed."""

_ACTIVE_S: Final = 1.0
"""Seconds for which a caller's share stays reserved after the caller's last admission or refusal."""
_FORGET_EVERY_S: Final = 0.1
_FEW: Final = 0.5
"""Fraction of a caller's share of requests. A caller with less in progress has few (`CallerShares.has_few`)."""


@dataclass(slots=True, eq=False)
class Waiter:
    """Bulk work that waits for its turn. `counted` is True while `FairWaiting.tokens` includes its tokens."""

    tokens: float
    granted: Future[None]
    counted: bool = True


@dataclass(slots=True)
class _Line:
    """A queue in a tree. The root contains a line for each caller, and a caller's line contains one for each source.

    Attributes:
        weight: The weight compared with sibling lines.
        finish: The tokens granted to this line, divided by its weight. The sibling with the lowest value is next.
        clock: The `finish` of the inner line that had the last turn, before that turn. New inner lines start with it.
    """

    weight: float = 1.0
    finish: float = 0.0
    clock: float = 0.0
    lines: dict[Hashable, "_Line"] = field(default_factory=dict)
    waiters: deque[Waiter] = field(default_factory=deque)

    def line(self, key: Hashable, weight: float = 1.0) -> "_Line":
        """Return the inner line with a key. Create it if it does not exist."""
        found = self.lines.get(key)
        if found is None:
            found = self.lines[key] = _Line(weight, self.clock)
        return found

    def next(self) -> Hashable:
        """Return the key of the inner line whose turn is next."""
        return min(self.lines.items(), key=lambda each: each[1].finish)[0]


class FairWaiting:
    """The waiters of all callers. The next turn goes to the caller with the fewest granted tokens for its weight."""

    def __init__(self) -> None:
        self._all = _Line()
        self.tokens = 0.0

    def __bool__(self) -> bool:
        return bool(self._all.lines)

    @property
    def callers(self) -> int:
        """Number of callers with waiting work."""
        return len(self._all.lines)

    def add(self, caller: Caller, source: Hashable, waiter: Waiter) -> None:
        """Append a waiter to the line for its source (a stream or call)."""
        self._all.line(caller.key, caller.weight).line(source).waiters.append(waiter)
        self.tokens += waiter.tokens

    def peek(self) -> Waiter | None:
        """Return the next waiter, after dropping cancelled ones."""
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
        caller = self._all.next()
        return caller, self._all.lines[caller].next()

    def drop_gone(self) -> None:
        """Drop all cancelled waiters together. There may be thousands, and dropping them singly would take too long."""
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
    """The turns of bulk work, on one event loop. While the loop is late, only one part may be in progress."""

    def __init__(self, encoders: EncoderBacklog, loop: LoopBacklog) -> None:
        self._encoders = encoders
        self._loop = loop
        self.waiting = FairWaiting()

    async def take(self, caller: Caller, source: Hashable, tokens: float) -> None:
        """Wait for the turn of a part with these tokens, and count it as work. Call `grant` whenever work has ended."""
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
        """Grant turns while the encoders can accept more bulk work."""
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
    """Each caller's small requests in progress, on one event loop."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._shares: dict[str, _Share] = {}
        self._weights = 0.0
        self._forgot_s = clock()

    def enter(self, caller: Caller, tokens: float) -> None:
        """Record an admitted request of a caller."""
        share = self._of(caller)
        share.requests += 1
        share.tokens += tokens

    def grow(self, caller: Caller, tokens: float) -> None:
        """Record that admitted work costs more tokens than predicted."""
        self._of(caller).tokens += tokens

    def leave(self, caller: Caller, tokens: float) -> None:
        """Record the end of a request, with its total cost in tokens."""
        share = self._of(caller)
        share.requests -= 1
        share.tokens = max(0.0, share.tokens - tokens) if share.requests else 0.0

    def has_room(self, caller: Caller, tokens: float, in_work_tokens: float, allowed_tokens: float) -> bool:
        """Return True if a caller with `tokens` more tokens stays within its share of `allowed_tokens`.

        Shares are by weight among active callers, however much each requests. Among many callers a share may be smaller
        than one request, so a caller without requests in progress also has room up to twice `allowed_tokens`.
        """
        share = self._of(caller)
        if not share.requests and in_work_tokens <= 2 * allowed_tokens:
            return True
        return share.tokens + tokens <= allowed_tokens * share.weight / self._weights

    def has_few(self, caller: Caller, requests: int) -> bool:
        """Return True if a caller has less than half its share of the `requests` in progress."""
        share = self._of(caller)
        return share.requests < _FEW * requests * share.weight / self._weights

    def promise(self, caller: Caller, work_s: float, longest_s: float) -> float:
        """Return the seconds after which a refused caller may retry.

        Each promise to a caller is later than the last, up to `longest_s`, so that refused requests do not all come
        back at once. `work_s` is the duration of the request on an idle server.
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
        """Drop callers without recent requests."""
        self._shares = {key: each for key, each in self._shares.items() if each.requests or each.seen_s > seen_before_s}
        self._weights = sum(each.weight for each in self._shares.values())
