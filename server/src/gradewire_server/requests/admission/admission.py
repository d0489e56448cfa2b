"""Admission: interactive work is let in while it can soon be done, bulk work waits for its turn."""

import asyncio
import math
import time
from collections.abc import AsyncIterator, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Final

from typing_extensions import override

from gradewire_server.domain.caller import Caller
from gradewire_server.domain.turn import Lane, Turn, take_turn
from gradewire_server.requests.admission.costs import CostEstimates
from gradewire_server.requests.admission.fair_waiting import FairWaiting, Waiter
from gradewire_server.requests.admission.overload import OverloadWatch
from gradewire_server.requests.admission.permits import Permits
from gradewire_server.requests.admission.service_rate import ServiceRate
from gradewire_server.requests.admission.slowed import SlowedMessages
from gradewire_server.requests.errors import OverloadedError
from gradewire_server.requests.plan import MetricPlan
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
_FREE_TOKENS: Final = 4
"""A request that costs no more is let in always: its answer and its references are in the cache."""
_MIN_IN_WORK: Final = 24
"""Small requests that are in work at a time whatever the measured rate says: with fewer the encoder's batches would be
small, the rate would fall, and still fewer would be let in."""
_MIN_BULK_PARTS: Final = 2
"""Parts that are let in however large they are: while one's texts are computed, another one is read."""
_MIN_RETRY_S: Final = 0.05
_MAX_RETRY_S: Final = 30.0
_SATURATED_S: Final = 0.05
"""Seconds of work in the server from which on its rate counts as all that it can do."""


@dataclass(frozen=True, slots=True)
class Work:
    """What is to be admitted.

    Attributes:
        caller: For whom.
        kind: Requests of one kind cost alike: the names of the metrics.
        size_bytes: Of the request, or of this part of it.
        items: How many.
    """

    caller: Caller
    kind: Hashable
    size_bytes: int
    items: int


def work_of(caller: Caller, plans: Sequence[MetricPlan], size_bytes: int, items: int) -> Work:
    """What a request or a part of it is; one that asks a judge takes its turn in the judge's queue instead."""
    judged = any(plan.judged for plan in plans)
    return Work(caller, tuple(plan.provenance.name for plan in plans), 0 if judged else size_bytes, items)


def _kind(work: Work) -> Hashable:
    """What costs alike: requests of one caller with the same metrics."""
    return work.caller.key, work.kind


class Admission:
    """All permits of a server. Lives on one event loop.

    Args:
        capacity: How much may be in flight.
    """

    def __init__(self, capacity: Capacity) -> None:
        self.items = Permits(capacity.max_items, "items")
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
        self._overload = OverloadWatch()
        self._promised_tokens = 0.0
        self._promised_since_s = time.monotonic()

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
        return self.is_small(self._tokens(work)) if self._rate.tokens_per_s else work.items <= _SMALL_ITEMS

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

        What a caller's small requests cost is known from those before; one whose answers are all in the cache is let
        pass. Errors as `interactive`.
        """
        self._refuse_late(self._costs.tokens(caller.key, 1), math.inf if left_s is None else left_s)

    @contextmanager
    def large(self, work: Work, left_s: float) -> Iterator[None]:
        """Lets a large request in, whose parts then wait for their turns (`bulk`); arguments and errors as above.

        One that is alone is let in whatever it seems to cost: nobody would be served sooner without it. Nor is one
        refused of whose kind nothing is known yet.
        """
        rate = self._rate.tokens_per_s
        alone = not self._waiting and not any(self._parts.values())
        if rate and not alone and self._costs.knows(_kind(work)):
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
        tokens = self._tokens(work)
        await self._turn(work.caller, source, tokens)
        try:
            await self.items.acquire(work.items)
        except BaseException:
            self._leave(Lane.BULK, tokens)
            raise
        turn = take_turn(Turn(Lane.BULK))
        try:
            yield
        finally:
            self.leave(work, tokens, turn)

    def is_small(self, tokens: float) -> bool:
        """Whether so many tokens are soon done."""
        return tokens <= _BULK_AHEAD_S * self._rate.tokens_per_s

    def _refuse_late(self, tokens: float, left_s: float) -> None:
        rate = self._rate.tokens_per_s
        if not rate or tokens <= _FREE_TOKENS or self._parts[Lane.INTERACTIVE] < _MIN_IN_WORK:
            return
        wait_s = self.wait_s
        # Where work has been waiting for long, more of it makes everybody late and nothing faster.
        standing = time.monotonic() - self._calm_s > _BURST_S
        longest_s = min(_STANDING_WAIT_S, self._max_wait_s) if standing else self._max_wait_s
        if wait_s > longest_s or wait_s + tokens / rate > left_s:
            self._overload.refused()
            raise OverloadedError(
                f"{wait_s:.2g} s of work are before this; come back later", retry_after_s=self._promise(tokens, wait_s)
            )

    async def _turn(self, caller: Caller, source: Hashable, tokens: float) -> None:
        if not self._waiting and self._has_room(tokens):
            self._enter(Lane.BULK, tokens)
            return
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.add(caller, source, Waiter(tokens, granted))
        try:
            await granted
        except asyncio.CancelledError:
            if not granted.cancelled():  # cancelled after the turn was given
                self._leave(Lane.BULK, tokens)
            raise

    def enter(self, work: Work, left_s: float) -> tuple[float, Turn]:
        """Begins what `interactive` does for a block; returns what `leave` wants."""
        tokens = self._tokens(work)
        self._refuse_late(tokens, left_s)
        self.items.take(work.items)
        self._enter(Lane.INTERACTIVE, tokens)
        return tokens, take_turn(Turn(Lane.INTERACTIVE))

    def leave(self, work: Work, tokens: float, turn: Turn) -> None:
        """Work is done: learns what it has cost, and makes room for others."""
        self._costs.learn(_kind(work), work.size_bytes, turn.tokens)
        if turn.lane is Lane.INTERACTIVE:
            self._costs.learn(work.caller.key, 1, turn.tokens)
        self._rate.finished(turn.tokens, tokens, saturated=self._is_saturated())
        self._leave(turn.lane, tokens)
        self.items.release(work.items)

    def _tokens(self, work: Work) -> float:
        return self._costs.tokens(_kind(work), work.size_bytes)

    def _is_saturated(self) -> bool:
        in_work = self._in_work
        return in_work[Lane.INTERACTIVE] + in_work[Lane.BULK] > _SATURATED_S * self._rate.tokens_per_s

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
        self._in_work[lane] = max(0.0, self._in_work[lane] - tokens)
        self._parts[lane] -= 1
        if self.wait_s < _CALM_WAIT_S:
            self._calm_s = time.monotonic()
        while (waiter := self._waiting.peek()) is not None and self._has_room(waiter.tokens):
            self._waiting.pop()
            self._enter(Lane.BULK, waiter.tokens)
            waiter.granted.set_result(None)

    def _promise(self, tokens: float, wait_s: float) -> float:
        """When to come back: behind those who were told so before, so that they do not all come at once."""
        now_s = time.monotonic()
        rate = self._rate.tokens_per_s
        done = (now_s - self._promised_since_s) * rate
        self._promised_tokens = max(0.0, self._promised_tokens - done) + tokens
        self._promised_since_s = now_s
        return min(_MAX_RETRY_S, max(_MIN_RETRY_S, self._promised_tokens / rate + wait_s - self._max_wait_s / 2))


class _Interactive(AbstractContextManager[None]):
    """A small request in work; no generator, for it stands around every call."""

    __slots__ = ("_admission", "_left_s", "_tokens", "_turn", "_work")

    def __init__(self, admission: Admission, work: Work, left_s: float) -> None:
        self._admission = admission
        self._work = work
        self._left_s = left_s

    @override
    def __enter__(self) -> None:
        self._tokens, self._turn = self._admission.enter(self._work, self._left_s)

    @override
    def __exit__(self, *_: object) -> None:
        self._admission.leave(self._work, self._tokens, self._turn)
