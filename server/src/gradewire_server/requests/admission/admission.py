"""Admission: interactive work is let in while it can soon be done, bulk work waits for its turn."""

import asyncio
import math
import time
from collections.abc import AsyncIterator, Hashable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from typing import Final

from typing_extensions import override

from gradewire_server.domain.caller import Caller
from gradewire_server.domain.turn import Lane, Turn, take_turn
from gradewire_server.requests.admission.admitted import Admitted
from gradewire_server.requests.admission.costs import CostEstimates
from gradewire_server.requests.admission.fair_waiting import FairWaiting, Waiter
from gradewire_server.requests.admission.overload import OverloadWatch
from gradewire_server.requests.admission.permits import Permits
from gradewire_server.requests.admission.service_rate import ServiceRate
from gradewire_server.requests.admission.shares import CallerShares
from gradewire_server.requests.admission.slowed import SlowedMessages
from gradewire_server.requests.admission.work import Work
from gradewire_server.requests.errors import OverloadedError
from gradewire_server.settings.limits import Capacity

_BULK_AHEAD_S: Final = 0.25
"""Seconds of bulk work that are let in at a time: enough to keep the encoder busy, and what one waits for behind it."""
_BURST_S: Final = 1.0
"""Seconds for which small requests may come faster than they are done."""
_STANDING_WAIT_S: Final = 0.2
"""Longest wait where they come faster for longer than that; more in work would score nothing sooner."""
_CALM_WAIT_S: Final = 0.05
"""A burst is over when no more than so much is waiting."""
_SMALL_ITEMS: Final = 64
"""Items of a small request, while nothing is known of how fast work is done."""
_MAX_SMALL_ITEMS: Final = 256
"""Items of a small request however little those before it cost: the next one may not be in the cache."""
_FREE_TOKENS: Final = 4
"""A request that costs no more waits for nothing: its answer and its references are in the cache."""
_MIN_IN_WORK_TOKENS: Final = 960
"""Tokens of small requests, two dozen short rows, that are in work at a time whatever the measured rate says: with
fewer the encoder's batches would be small, the rate would fall, and still fewer would be let in."""
_MIN_BULK_PARTS: Final = 2
"""Parts that are let in however large they are: while one's texts are computed, another one is read."""
_BULK_SHARE: Final = 3 / 8
"""Of all items in flight, for bulk work and as much for work that asks a judge; the rest is left to small requests."""
_ARRIVAL: Final = "arrival"
"""Kind of cost: what a small request of a caller costs in the mean, whatever its metrics are."""
_MIN_RETRY_S: Final = 0.05
_MAX_RETRY_S: Final = 10.0


class Admission:
    """All permits of a server. Lives on one event loop.

    Args:
        capacity: How much may be in flight.
    """

    def __init__(self, capacity: Capacity) -> None:
        self.items = Permits(capacity.max_items, "items")
        most = max(1, int(capacity.max_items * _BULK_SHARE))
        self._bulk_items = Permits(most, "items of bulk work")
        self._judged_items = Permits(most, "items for a judge")
        self.bytes = Permits(capacity.max_bytes, "bytes of requests")
        self.stream_bytes = Permits(capacity.max_stream_bytes, "bytes of streams")
        self.waiting_bytes = Permits(capacity.max_stream_bytes * 3 // 8, "bytes of messages that wait for others")
        self.slowed = SlowedMessages(capacity.max_stream_bytes // 8)
        self.streams = Permits(capacity.max_streams, "streams")
        self._max_wait_s = capacity.max_wait_s
        self._rate = ServiceRate()
        self._costs = CostEstimates()
        self._in_work = {Lane.INTERACTIVE: 0.0, Lane.BULK: 0.0}
        self._parts = {Lane.INTERACTIVE: 0, Lane.BULK: 0}
        self._calm_s = time.monotonic()
        self._waiting = FairWaiting()
        self._shares = CallerShares()
        self._overload = OverloadWatch()

    @property
    def overload_s(self) -> float:
        """Seconds for which small requests have been refused; 0 while there is no overload. Any thread may ask."""
        return self._overload.lasts_s

    @property
    def tokens_per_s(self) -> float:
        """What the server gets through, as measured; 0 before anything was."""
        return self._rate.tokens_per_s

    @property
    def waiting_tokens(self) -> float:
        """Tokens of bulk work that waits for its turns."""
        return self._waiting.tokens

    @property
    def wait_s(self) -> float:
        """Seconds that an interactive request would wait now for what is before it; 0 while that is not known."""
        rate = self._rate.tokens_per_s
        return self._in_work[Lane.INTERACTIVE] / rate if rate else 0.0

    def is_interactive(self, work: Work) -> bool:
        """Whether the work is small enough to be done at once; what is larger takes turns with other bulk work."""
        if not self._rate.tokens_per_s:
            return work.items <= _SMALL_ITEMS
        return work.items <= _MAX_SMALL_ITEMS and self.is_small(self._tokens(work))

    def interactive(self, work: Work, left_s: float) -> AbstractContextManager[None]:
        """Lets a small request in for the block.

        Args:
            work: What it is.
            left_s: Seconds until its deadline.

        Raises:
            OverloadedError: It would wait too long, or longer than it has time; nothing was begun.
        """
        return _Interactive(self, work, left_s)

    def check_arrival(self, caller: Caller, left_s: float | None) -> None:
        """Refuses a call before its request is received, where those of its caller cost too much now.

        What a caller's small requests cost in the mean is known from those before, which were in the cache or not.
        Errors as `interactive`.
        """
        tokens = self._costs.tokens(caller.key, _ARRIVAL, 1)
        self._refuse_late(caller, tokens, math.inf if left_s is None else left_s)

    @contextmanager
    def large(self, work: Work, left_s: float) -> Iterator[None]:
        """Lets a large request in, whose parts then wait for their turns (`bulk`); arguments and errors as above.

        One that is alone is let in whatever it seems to cost: nobody would be served sooner without it. Nor is one
        refused of whose kind nothing is known yet.
        """
        rate = self._rate.tokens_per_s
        alone = not self._waiting and not any(self._parts.values())
        if rate and not alone and not work.judged and self._costs.knows(work.caller.key, work.kind):
            tokens = self._tokens(work)
            # Its caller gets an equal share of the turns, and no more than all of them.
            needed_s = min(self._waiting.tokens + tokens, tokens * (1 + self._waiting.callers)) / rate
            if needed_s > left_s:
                raise OverloadedError(
                    f"this takes {needed_s:.2g} s beside the work of others, and has {left_s:.2g} s; "
                    "allow more time, send less, or come back later",
                    retry_after_s=min(_MAX_RETRY_S, max(_MIN_RETRY_S, needed_s - left_s)),
                )
        yield

    @asynccontextmanager
    async def bulk(self, work: Work, source: Hashable) -> AsyncIterator[None]:
        """Waits for the turn of a part of a stream, of a preparation or of a large request, and lets it in.

        Args:
            work: What it is.
            source: What takes turns within the caller: a stream, a call.
        """
        if work.judged:  # takes its turn in the judge's queue, for as long as that takes
            async with self._items_of_bulk(work):
                take_turn(Turn(Lane.BULK))
                yield
            return
        tokens = self._tokens(work)
        await self._turn(work.caller, source, tokens)
        turn = Admitted(self, work, Lane.BULK, tokens)
        try:
            async with self._items_of_bulk(work):
                take_turn(turn)
                yield
        finally:
            self._end(turn)

    @asynccontextmanager
    async def _items_of_bulk(self, work: Work) -> AsyncIterator[None]:
        """Permits for the items; those of the whole server are asked for last, so that nobody waits holding them."""
        mine = self._judged_items if work.judged else self._bulk_items
        await mine.acquire(work.items)
        try:
            await self.items.acquire(work.items)
            try:
                yield
            finally:
                self.items.release(work.items)
        finally:
            mine.release(work.items)

    def is_small(self, tokens: float) -> bool:
        """Whether so many tokens are soon done."""
        return tokens <= _BULK_AHEAD_S * self._rate.tokens_per_s

    def _refuse_late(self, caller: Caller, tokens: float, left_s: float) -> None:
        rate = self._rate.tokens_per_s
        in_work = self._in_work[Lane.INTERACTIVE]
        if not rate or not in_work or tokens <= _FREE_TOKENS:
            return
        wait_s = in_work / rate
        # Where work has been waiting for long, more of it makes everybody late and nothing faster.
        standing = time.monotonic() - self._calm_s > _BURST_S
        longest_s = min(_STANDING_WAIT_S, self._max_wait_s) if standing else self._max_wait_s
        allowed = max(longest_s * rate, _MIN_IN_WORK_TOKENS)
        in_time = wait_s + tokens / rate <= left_s
        if in_time and (in_work <= allowed or self._shares.has_room(caller, tokens, in_work, allowed)):
            return
        self._overload.refused()
        after_s = self._shares.promise(caller, tokens, rate, _MAX_RETRY_S) + wait_s - self._max_wait_s / 2
        raise OverloadedError(
            f"{wait_s:.2g} s of work are before this; come back later",
            retry_after_s=min(_MAX_RETRY_S, max(_MIN_RETRY_S, after_s)),
        )

    async def _turn(self, caller: Caller, source: Hashable, tokens: float) -> None:
        """Waits until a part of so many tokens has its turn, and counts it."""
        if not self._waiting and self._has_room(tokens):
            self._enter(Lane.BULK, tokens)
            return
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiter = Waiter(tokens, granted)
        self._waiting.add(caller, source, waiter)
        try:
            await granted
        except asyncio.CancelledError:
            if granted.cancelled():
                self._waiting.remove(caller, source, waiter)
            else:  # cancelled after the turn was given
                self._leave(Lane.BULK, tokens)
            raise

    def enter(self, work: Work, left_s: float) -> Turn:
        """Begins what `interactive` does for a block; `leave` ends it."""
        if work.judged:
            self._judged_items.take(work.items)
            try:
                self.items.take(work.items)
            except OverloadedError:
                self._judged_items.release(work.items)
                raise
            return take_turn(Turn(Lane.INTERACTIVE))
        tokens = self._tokens(work)
        self._refuse_late(work.caller, tokens, left_s)
        self.items.take(work.items)
        self._enter(Lane.INTERACTIVE, tokens)
        self._shares.enter(work.caller, tokens)
        turn = Admitted(self, work, Lane.INTERACTIVE, tokens)
        take_turn(turn)
        return turn

    def leave(self, work: Work, turn: Turn) -> None:
        """Ends what `enter` began."""
        if isinstance(turn, Admitted):
            self._end(turn)
        else:
            self._judged_items.release(work.items)
        self.items.release(work.items)

    def _end(self, turn: Admitted) -> None:
        """Learns what work has cost, and makes room for others."""
        work, caller = turn.work, turn.work.caller
        turn.ended = True
        self._costs.learn(caller.key, work.kind, work.size_bytes, turn.tokens)
        self._rate.left(turn.expected_tokens, sum(self._in_work.values()))
        if turn.lane is Lane.INTERACTIVE:
            self._costs.learn(caller.key, _ARRIVAL, 1, turn.tokens)
            self._shares.leave(caller, turn.counted_tokens)
        self._leave(turn.lane, turn.counted_tokens)

    def grow(self, turn: Admitted, tokens: float) -> None:
        """Work that was let in costs so much more than was thought."""
        self._in_work[turn.lane] += tokens
        if turn.lane is Lane.INTERACTIVE:
            self._shares.grow(turn.work.caller, tokens)

    def computed(self, tokens: int) -> None:
        """So many tokens were computed, of work that is here or has left."""
        self._rate.computed(tokens)

    def _tokens(self, work: Work) -> float:
        return self._costs.tokens(work.caller.key, work.kind, work.size_bytes)

    def _has_room(self, tokens: float) -> bool:
        if self._parts[Lane.BULK] < _MIN_BULK_PARTS:
            return True
        return self._in_work[Lane.BULK] + tokens <= _BULK_AHEAD_S * self._rate.tokens_per_s

    def _enter(self, lane: Lane, tokens: float) -> None:
        if not any(self._parts.values()):
            self._rate.began()
        self._in_work[lane] += tokens
        self._parts[lane] += 1

    def _leave(self, lane: Lane, tokens: float) -> None:
        self._parts[lane] -= 1
        self._in_work[lane] = max(0.0, self._in_work[lane] - tokens) if self._parts[lane] else 0.0
        if self.wait_s < _CALM_WAIT_S:
            self._calm_s = time.monotonic()
            self._shares.calm()
        while (waiter := self._waiting.peek()) is not None and self._has_room(waiter.tokens):
            self._waiting.pop()
            self._enter(Lane.BULK, waiter.tokens)
            waiter.granted.set_result(None)


class _Interactive(AbstractContextManager[None]):
    """A small request in work; no generator, for it stands around every call."""

    __slots__ = ("_admission", "_left_s", "_turn", "_work")

    def __init__(self, admission: Admission, work: Work, left_s: float) -> None:
        self._admission = admission
        self._work = work
        self._left_s = left_s

    @override
    def __enter__(self) -> None:
        self._turn = self._admission.enter(self._work, self._left_s)

    @override
    def __exit__(self, *_: object) -> None:
        self._admission.leave(self._work, self._turn)
