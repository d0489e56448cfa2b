"""Admit or refuse requests, and decide which work goes first.

The rules:

- *Predictions.* A request's cost is the number of tokens that encoders will have to compute for it. Its wait is the
  cost of the small requests in progress, divided by the encoders' rate.
- *Refusals* are immediate and include a retry delay. The server refuses a small request that would miss its deadline.
  It refuses a small request when the allowed wait is used up, unless its caller has less than its share in progress. It
  refuses a call when the event loop starts calls late, unless its caller has few in progress. It refuses a large
  request that cannot meet its deadline, and any request if no permit is left.
- *Order.* Small requests go first in every queue. Bulk work takes turns. The next turn goes to the caller that has
  received the fewest tokens for its weight, and within that caller to the stream that has received the fewest.
- *Estimates* are in `load`: the cost of requests by caller and metrics (`CostEstimates`), the encoders' rate
  (`ServiceRate`), and the duration of the event loop's rounds (`LoopRounds`). All other quantities are exact counts.

`load` measures, `turns` limits items and bytes and divides them among callers, and this module decides. Each constant
is at the top of the module that uses it.
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
"""Maximum number of items in a small request before the encoders' rate is known."""
_MAX_SMALL_ITEMS: Final = 256
"""Maximum number of items in a small request, however cheap earlier requests were. New items may not be cached."""
_FREE_TOKENS: Final = 4
"""Maximum cost of a request that never waits. Such a request finds its answer and references in the cache."""
_BULK_SHARE: Final = 3 / 8
"""Share of the item limit for bulk work, and the same share again for judged work. The rest is for small requests."""
_ANY_METRICS: Final = "any metrics"
"""Key for the mean cost of a caller's small requests. The server knows only this cost when a call arrives."""
_MIN_RETRY_S: Final = 0.05
_MAX_RETRY_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class Work:
    """A request, or a part of a request.

    Attributes:
        kind: The names of the metrics, because requests with the same metrics have similar costs.
        judged: True if the work needs a judge. It then waits in the judge's queue instead of for an encoder.
    """

    caller: Caller
    kind: Hashable
    size_bytes: int
    items: int
    judged: bool = False


def work_of(caller: Caller, plans: Sequence[MetricPlan], size_bytes: int, items: int) -> Work:
    """Return the `Work` for a request with these metrics, or for a part of the request."""
    kind = frozenset(plan.provenance.name for plan in plans)
    return Work(caller, kind, size_bytes, items, judged=any(plan.judged for plan in plans))


class Admitted(Turn):
    """A turn that counts its cost: the expected tokens, or the tokens that it has queued if they are more."""

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
    """A server's admission control, for one event loop. `clock` is monotonic, in seconds."""

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
        """Seconds since the server began to refuse small requests, or 0 without overload. Any thread may read it."""
        return self._overload.lasts_s

    @property
    def tokens_per_s(self) -> float:
        """The encoders' measured rate in tokens per second, or 0 before the first measurement."""
        return self._encoders.rate.tokens_per_s

    @property
    def waiting_tokens(self) -> float:
        """The tokens in bulk work that waits for its turn."""
        return self._turns.waiting.tokens

    @property
    def wait_s(self) -> float:
        """Seconds that an interactive request would wait now, or 0 if the encoders' rate is unknown."""
        return self._encoders.wait_s

    def is_interactive(self, work: Work) -> bool:
        """Return True if the work is small enough to run at once. Larger work takes turns as bulk work."""
        if not self.tokens_per_s:
            return work.items <= _SMALL_ITEMS
        return work.items <= _MAX_SMALL_ITEMS and self._encoders.is_small(self._tokens(work))

    def arrive(self, caller: Caller, left_s: float | None, waited_s: float | None = None) -> None:
        """Admit a call before its request is received, based on the mean cost of its caller's small requests.

        Call `depart` when an admitted call has ended. Errors are those of `interactive`.

        Args:
            caller: The caller.
            left_s: Seconds until the call's deadline, or None without one.
            waited_s: Seconds that the call waited for the event loop, or None if not measured.
        """
        left_s = math.inf if left_s is None else left_s
        if waited_s is not None:
            self._loop.began(waited_s)
        self._check_loop(caller, left_s)
        self._check_encoders(caller, self._costs.tokens(caller.key, _ANY_METRICS, 1), left_s)
        self._loop.under_way += 1

    def depart(self) -> None:
        """Record the end of a call that `arrive` admitted."""
        self._loop.under_way -= 1

    @contextmanager
    def interactive(self, work: Work, left_s: float) -> Iterator[None]:
        """Admit a small request for the block.

        Raises:
            OverloadedError: The request would wait too long or miss its deadline. No work was started.
        """
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
        """Admit a large request. Its parts then wait for their turns (`bulk`). Errors are those of `interactive`.

        A request whose cost is unknown is always admitted. If no other work is in progress, any request is admitted,
        since refusing it would help nobody.
        """
        rate = self.tokens_per_s
        waiting = self._turns.waiting
        alone = not waiting and self._encoders.is_idle
        if rate and not alone and not work.judged and self._costs.knows(work.caller.key, work.kind):
            tokens = self._tokens(work)
            # The caller gets an equal share of the turns, unless fewer tokens are waiting.
            needed_s = min(waiting.tokens + tokens, tokens * (1 + waiting.callers)) / rate
            if needed_s > left_s:
                raise _refusal(
                    f"this request would take {needed_s:.2g} s with the current load, but its deadline is in "
                    f"{left_s:.2g} s; allow more time, send fewer items, or retry later",
                    needed_s - left_s,
                )
        yield

    @asynccontextmanager
    async def bulk(self, work: Work, source: Hashable) -> AsyncIterator[None]:
        """Wait for the turn of a part of a stream, preparation or large request, then admit it for the block.

        `source` identifies the stream or call. A caller's sources take turns.
        """
        # Take the server-wide permits last, so that no work holds them while it waits.
        if work.judged:  # waits in the judge's queue instead of for an encoder
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
        """Record that admitted work costs more tokens than predicted."""
        self._encoders.grow(turn.lane, tokens)
        if turn.lane is Lane.INTERACTIVE:
            self._shares.grow(turn.work.caller, tokens)

    def computed(self, tokens: int) -> None:
        """Record tokens computed for current or earlier work."""
        self._encoders.rate.computed(tokens)

    def _end(self, turn: Admitted) -> None:
        """Update the cost estimates with ended work, and let waiting work start."""
        work, caller = turn.work, turn.work.caller
        turn.ended = True
        self._costs.learn(caller.key, work.kind, work.size_bytes, turn.tokens)
        if turn.lane is Lane.INTERACTIVE:
            self._costs.learn(caller.key, _ANY_METRICS, 1, turn.tokens)
            self._shares.leave(caller, turn.counted_tokens)
        self._encoders.leave(turn.lane, turn.counted_tokens, turn.expected_tokens)
        self._turns.grant()

    def _check_loop(self, caller: Caller, left_s: float) -> None:
        """Raise OverloadedError if the event loop is overloaded, unless the caller has few calls in progress."""
        loop = self._loop
        if not loop.is_late:
            return
        in_time = loop.wait_s < min(left_s, self._max_wait_s)
        if in_time and self._shares.has_few(caller, self._encoders.parts[Lane.INTERACTIVE]):
            return
        self._overload.refused()
        after_s = self._shares.promise(caller, 1 / max(1.0, loop.calls_per_s), _MAX_RETRY_S)
        raise _refusal(f"the server is busy (calls wait {loop.wait_s:.2g} s for a CPU); retry later", after_s)

    def _check_encoders(self, caller: Caller, tokens: float, left_s: float) -> None:
        """Raise OverloadedError if too much work is ahead of the request, unless its caller has little in progress."""
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
        raise _refusal(f"the server is busy ({wait_s:.2g} s of work queued); retry later", after_s)

    def _tokens(self, work: Work) -> float:
        return self._costs.tokens(work.caller.key, work.kind, work.size_bytes)


def _refusal(message: str, after_s: float) -> OverloadedError:
    return OverloadedError(message, retry_after_s=min(_MAX_RETRY_S, max(_MIN_RETRY_S, after_s)))
