"""Admit or refuse requests, and decide which work goes first.

The rules:

- *Predictions.* A request's cost is the number of tokens that encoders must compute for the request. A new request's
  wait is the cost of all small requests in progress, divided by the encoders' rate.
- *Refusals* are immediate and include a retry delay. The server refuses a request that would miss its deadline or that
  finds no permit. Unless the caller has less than a fair share of the work in progress, the server also refuses a small
  request that would wait too long, and any call that arrives while the event loop is late.
- *Order.* Small requests go first in every queue. Bulk work takes turns. The next turn goes to the caller that has
  received the fewest tokens in proportion to its weight.
"""

import math
import time
from collections.abc import AsyncIterator, Callable, Hashable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Final

from typing_extensions import override

from gradewire_server.domain.caller import Caller, Lane, Turn, take_turn
from gradewire_server.requests.errors import OverloadedError
from gradewire_server.requests.load import CostEstimates, EncoderBacklog, LoopBacklog, OverloadWatch
from gradewire_server.requests.plan import MetricPlan
from gradewire_server.requests.turns import BulkTurns, CallerShares, Permits, SlowedMessages
from gradewire_server.settings.limits import Capacity

_SMALL_ITEMS: Final = 64
"""The maximum number of items in a small request before the encoders' rate is known."""
_MAX_SMALL_ITEMS: Final = 256
"""The maximum number of items in a small request, even if the estimated cost is low."""
_MAX_SMALL_TOKENS: Final = 2048
"""The maximum estimated cost of a small request, in tokens, however fast the encoders are.

A fast GPU does not shorten the server's own work, about 5 µs for each new token. Without this limit, calls with 256 new
items would all be interactive on a GPU, and single answers would wait for each of them.
"""
_FREE_TOKENS: Final = 4
"""Requests that cost this many tokens or fewer never wait, because their texts are cached."""
_BULK_SHARE: Final = 3 / 8
"""The share of all item permits that bulk work may use. Judged work may use the same share."""
_ANY_METRICS: Final = "any metrics"
"""The request kind for cost estimates before the metrics are known."""
_MIN_RETRY_S: Final = 0.05
_MAX_RETRY_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class Work:
    """A request, or a part of a request.

    Attributes:
        kind: The metrics' names. Requests of the same kind have similar costs.
        judged: True if the work needs a judge.
    """

    caller: Caller
    kind: Hashable
    size_bytes: int
    items: int
    judged: bool = False


def work_of(caller: Caller, plans: Sequence[MetricPlan], size_bytes: int, items: int) -> Work:
    """Return the `Work` for a request, or for a part of a request."""
    kind = frozenset(plan.provenance.name for plan in plans)
    return Work(caller, kind, size_bytes, items, judged=any(plan.judged for plan in plans))


class Admitted(Turn):
    """A turn with a cost in tokens: the expected number or the number queued so far, whichever is larger."""

    __slots__ = ("_admission", "counted_tokens", "ended", "expected_tokens", "work")

    def __init__(self, admission: "Admission", work: Work, lane: Lane, tokens: float) -> None:
        super().__init__(lane)
        self._admission = admission
        self.work = work
        self.expected_tokens = self.counted_tokens = tokens
        self.ended = False

    @override
    def queued(self, tokens: int) -> None:
        self.tokens += tokens
        more = self.tokens - self.counted_tokens
        if more > 0 and not self.ended:
            self.counted_tokens += more
            self._admission.grow(self, more)

    @override
    def computed(self, tokens: int) -> None:
        self._admission.computed(tokens)


class Admission:
    """The admission control for one event loop. `clock` is monotonic, in seconds."""

    def __init__(self, capacity: Capacity, clock: Callable[[], float] = time.monotonic) -> None:
        self.items = Permits(capacity.max_items, "items")
        most = max(1, int(capacity.max_items * _BULK_SHARE))
        self._bulk_items = Permits(most, "items in bulk work")
        self._judged_items = Permits(most, "items for a judge")
        self.bytes = Permits(capacity.max_bytes, "request bytes")
        self.stream_bytes = Permits(capacity.max_stream_bytes, "stream bytes")
        self.waiting_bytes = Permits(capacity.max_stream_bytes * 3 // 8, "bytes of waiting stream messages")
        self.slowed = SlowedMessages(capacity.max_stream_bytes // 8)
        self.streams = Permits(capacity.max_streams, "streams")
        self._max_wait_s = capacity.max_wait_s
        self._costs = CostEstimates()
        self._shares = CallerShares(clock)
        self._overload = OverloadWatch(clock)
        self._loop = LoopBacklog(clock)
        self._encoders = EncoderBacklog(capacity.max_wait_s, clock)
        self._turns = BulkTurns(self._encoders, self._loop)

    @property
    def overload_s(self) -> float:
        """The seconds since the current overload began, or 0 without overload. Thread-safe."""
        return self._overload.lasts_s

    @property
    def tokens_per_s(self) -> float:
        """The encoders' rate, or 0 before the first measurement."""
        return self._encoders.rate.tokens_per_s

    @property
    def waiting_tokens(self) -> float:
        """The number of tokens in bulk work that is waiting for its turn."""
        return self._turns.waiting.tokens

    @property
    def wait_s(self) -> float:
        """The seconds that an interactive request would wait now, or 0 if the encoders' rate is unknown."""
        return self._encoders.wait_s

    def is_interactive(self, work: Work) -> bool:
        """Return True if the work is small enough to run without taking turns."""
        if not self.tokens_per_s:
            return work.items <= _SMALL_ITEMS
        tokens = self._tokens(work)
        return work.items <= _MAX_SMALL_ITEMS and tokens <= _MAX_SMALL_TOKENS and self._encoders.is_small(tokens)

    def arrive(self, caller: Caller, left_s: float | None, waited_s: float | None = None) -> None:
        """Admit a call before its request is received, or raise OverloadedError. Call `depart` when the call has ended.

        `left_s` is the time until the deadline (None without a deadline). `waited_s` is the time that the call waited
        for the event loop (None if not measured).
        """
        left_s = math.inf if left_s is None else left_s
        if waited_s is not None:
            self._loop.began(waited_s)
        self._check_loop(caller, left_s)
        self._check_encoders(caller, self._costs.tokens(caller.key, _ANY_METRICS, 1), left_s)
        self._loop.under_way += 1

    def depart(self) -> None:
        """Record that an admitted call has ended."""
        self._loop.under_way -= 1

    @contextmanager
    def interactive(self, work: Work, left_s: float) -> Iterator[None]:
        """Admit a small request until the context exits, or raise OverloadedError."""
        if work.judged:
            with self._judged_items.hold(work.items), self.items.hold(work.items):
                take_turn(Turn(Lane.INTERACTIVE))
                yield
            return
        tokens = self._tokens(work)
        self._check_encoders(work.caller, tokens, left_s)
        self.items.take(work.items)
        self._encoders.enter(Lane.INTERACTIVE, tokens)
        self._shares.enter(work.caller, tokens)
        turn = Admitted(self, work, Lane.INTERACTIVE, tokens)
        take_turn(turn)
        try:
            yield
        finally:
            self._end(turn)
            self.items.release(work.items)

    @contextmanager
    def large(self, work: Work, left_s: float) -> Iterator[None]:
        """Admit a large request, or raise OverloadedError. The request's parts then wait for their turns (`bulk`)."""
        rate = self.tokens_per_s
        waiting = self._turns.waiting
        alone = not waiting and self._encoders.is_idle
        if rate and not alone and not work.judged and self._costs.knows(work.caller.key, work.kind):
            tokens = self._tokens(work)
            needed_s = min(waiting.tokens + tokens, tokens * (1 + waiting.callers)) / rate
            if needed_s > left_s:
                raise _refusal(
                    f"this request would take {needed_s:.2g} s with the current load, but its deadline is in "
                    f"{left_s:.2g} s; allow more time, send fewer items, or try again later",
                    needed_s - left_s,
                )
        yield

    @asynccontextmanager
    async def bulk(self, work: Work, source: Hashable) -> AsyncIterator[None]:
        """Wait until bulk work gets its turn, then admit the work until the context exits.

        `source` identifies the stream or call that the work belongs to.
        """
        # Take the server-wide permits last, so that no work holds them while it waits for other permits.
        if work.judged:
            async with self._judged_items.wait_for(work.items), self.items.wait_for(work.items):
                take_turn(Turn(Lane.BULK))
                yield
            return
        tokens = self._tokens(work)
        await self._turns.take(work.caller, source, tokens)
        turn = Admitted(self, work, Lane.BULK, tokens)
        try:
            async with self._bulk_items.wait_for(work.items), self.items.wait_for(work.items):
                take_turn(turn)
                yield
        finally:
            self._end(turn)

    def grow(self, turn: Admitted, tokens: float) -> None:
        """Add `tokens` to the cost of admitted work."""
        self._encoders.grow(turn.lane, tokens)
        if turn.lane is Lane.INTERACTIVE:
            self._shares.grow(turn.work.caller, tokens)

    def computed(self, tokens: int) -> None:
        """Record that an encoder computed `tokens`."""
        self._encoders.rate.computed(tokens)

    def _end(self, turn: Admitted) -> None:
        work, caller = turn.work, turn.work.caller
        turn.ended = True
        self._costs.learn(caller.key, work.kind, work.size_bytes, turn.tokens)
        if turn.lane is Lane.INTERACTIVE:
            self._costs.learn(caller.key, _ANY_METRICS, 1, turn.tokens)
            self._shares.leave(caller, turn.counted_tokens)
        self._encoders.leave(turn.lane, turn.counted_tokens, turn.expected_tokens)
        self._turns.grant()

    def _check_loop(self, caller: Caller, left_s: float) -> None:
        loop = self._loop
        if not loop.is_late:
            return
        in_time = loop.wait_s < min(left_s, self._max_wait_s)
        if in_time and self._shares.has_few(caller, self._encoders.parts[Lane.INTERACTIVE]):
            return
        self._overload.refused()
        after_s = self._shares.promise(caller, 1 / max(1.0, loop.calls_per_s), _MAX_RETRY_S)
        raise _refusal(f"the server is busy (calls wait {loop.wait_s:.2g} s for a CPU); try again later", after_s)

    def _check_encoders(self, caller: Caller, tokens: float, left_s: float) -> None:
        encoders = self._encoders
        rate, in_work = encoders.rate.tokens_per_s, encoders.in_work[Lane.INTERACTIVE]
        if not rate or not in_work or tokens <= _FREE_TOKENS:
            return
        wait_s = in_work / rate
        allowed = encoders.allowed_tokens(tokens)
        in_time = wait_s + tokens / rate <= left_s
        if in_time and (in_work <= allowed or self._shares.has_room(caller, tokens, in_work, allowed)):
            return
        self._overload.refused()
        after_s = self._shares.promise(caller, tokens / rate, _MAX_RETRY_S) + wait_s - allowed / rate / 2
        raise _refusal(f"the server is busy ({wait_s:.2g} s of work queued); try again later", after_s)

    def _tokens(self, work: Work) -> float:
        return self._costs.tokens(work.caller.key, work.kind, work.size_bytes)


def _refusal(message: str, after_s: float) -> OverloadedError:
    return OverloadedError(message, retry_after_s=min(_MAX_RETRY_S, max(_MIN_RETRY_S, after_s)))
