"""Admission: which requests are let in, which are refused, and who goes first.

The law. *Predicted* are the cost of a request, in tokens that encoders will have to compute, and the wait before it:
the tokens of small requests in work, at the rate of the encoders. *Refused*, at once and with the time to come back,
are: a small request that would not be done by its deadline, or before which the allowed wait is used up, unless its
caller has less than its share in work; a call while the event loop takes calls up late, unless its caller has little in
work; a large request that cannot be done by its deadline; and whatever finds no permit. *First* go small requests, in
every queue; bulk work takes turns, and the next turn is of the caller that has had least for its weight, and within it
of the stream that has had least. *Learned* are three quantities, all in `load`: what requests cost, by caller and
metrics (`CostEstimates`); how fast encoders are (`ServiceRate`); how long a round of the event loop takes
(`LoopRounds`). All else is counted from what is in work, and the constants stand at the top of the module that uses
them: `load` measures, `turns` bounds items and bytes and shares them between callers, and this module decides.
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
"""Items of a small request, while nothing is known of how fast work is done."""
_MAX_SMALL_ITEMS: Final = 256
"""Items of a small request however little those before it cost: the next one may not be in the cache."""
_FREE_TOKENS: Final = 4
"""A request that costs no more waits for nothing: its answer and its references are in the cache."""
_BULK_SHARE: Final = 3 / 8
"""Part of all items in flight for bulk work, and as much for work that asks a judge; small requests have the rest."""
_ANY_METRICS: Final = "any metrics"
"""Kind of cost: what a small request of a caller costs in the mean, which is all that is known when a call arrives."""
_MIN_RETRY_S: Final = 0.05
_MAX_RETRY_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class Work:
    """A request, or a part of one.

    Attributes:
        kind: Requests of one kind cost alike: the names of the metrics.
        judged: A judge is asked. It takes its turn in the judge's queue, for as long as that takes.
    """

    caller: Caller
    kind: Hashable
    size_bytes: int
    items: int
    judged: bool = False


def work_of(caller: Caller, plans: Sequence[MetricPlan], size_bytes: int, items: int) -> Work:
    """Return what a request with these metrics is, or a part of it."""
    kind = frozenset(plan.provenance.name for plan in plans)
    return Work(caller, kind, size_bytes, items, judged=any(plan.judged for plan in plans))


class Admitted(Turn):
    """A turn with the tokens that its work is expected to cost, or has queued where that is more."""

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
    """All permits of a server. Lives on one event loop, with a monotonic clock in seconds."""

    def __init__(self, capacity: Capacity, clock: Callable[[], float] = time.monotonic) -> None:
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
        self._costs = CostEstimates()
        self._shares = CallerShares(clock)
        self._overload = OverloadWatch(clock)
        self._loop = LoopBacklog(clock)
        self._encoders = EncoderBacklog(capacity.max_wait_s, clock)
        self._turns = BulkTurns(self._encoders, self._loop)

    @property
    def overload_s(self) -> float:
        """Seconds for which small requests have been refused; 0 while there is no overload. Any thread may ask."""
        return self._overload.lasts_s

    @property
    def tokens_per_s(self) -> float:
        """Tokens that the server gets through in a second, as measured; 0 before anything was."""
        return self._encoders.rate.tokens_per_s

    @property
    def waiting_tokens(self) -> float:
        """Tokens of bulk work that waits for its turns."""
        return self._turns.waiting.tokens

    @property
    def wait_s(self) -> float:
        """Seconds that an interactive request would wait now for what is before it; 0 while that is not known."""
        return self._encoders.wait_s

    def is_interactive(self, work: Work) -> bool:
        """Return whether the work is small enough to be done at once; what is larger takes turns as bulk work."""
        if not self.tokens_per_s:
            return work.items <= _SMALL_ITEMS
        return work.items <= _MAX_SMALL_ITEMS and self._encoders.is_small(self._tokens(work))

    def arrive(self, caller: Caller, left_s: float | None, waited_s: float | None = None) -> None:
        """Refuse a call before its request is received, where those of its caller cost too much now.

        What a caller's small requests cost in the mean is known from those before, which were in the cache or not.
        `depart` ends what is let in. Errors as `interactive`; None stands for no deadline and for a wait not measured.
        """
        left_s = math.inf if left_s is None else left_s
        if waited_s is not None:
            self._loop.began(waited_s)
        self._check_loop(caller, left_s)
        self._check_encoders(caller, self._costs.tokens(caller.key, _ANY_METRICS, 1), left_s)
        self._loop.under_way += 1

    def depart(self) -> None:
        """A call that was let in by `arrive` has ended."""
        self._loop.under_way -= 1

    @contextmanager
    def interactive(self, work: Work, left_s: float) -> Iterator[None]:
        """Let a small request in for the block.

        Raises:
            OverloadedError: It would wait too long, or longer than it has time; nothing was begun.
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
        """Lets a large request in, whose parts then wait for their turns (`bulk`); arguments and errors as above.

        One that is alone is let in whatever it seems to cost: nobody would be served sooner without it. Nor is one
        refused of whose kind nothing is known yet.
        """
        rate = self.tokens_per_s
        waiting = self._turns.waiting
        alone = not waiting and self._encoders.is_idle
        if rate and not alone and not work.judged and self._costs.knows(work.caller.key, work.kind):
            tokens = self._tokens(work)
            # Its caller gets an equal share of the turns, and no more than all of them.
            needed_s = min(waiting.tokens + tokens, tokens * (1 + waiting.callers)) / rate
            if needed_s > left_s:
                raise _refusal(
                    f"this takes {needed_s:.2g} s beside the work of others, and has {left_s:.2g} s; "
                    "allow more time, send less, or come back later",
                    needed_s - left_s,
                )
        yield

    @asynccontextmanager
    async def bulk(self, work: Work, source: Hashable) -> AsyncIterator[None]:
        """Wait for the turn of a part of a stream, of a preparation or of a large request, and let it in.

        `source` is what takes turns within the caller: a stream, a call.
        """
        # Permits of the whole server are asked for last, so that nobody waits holding them.
        if work.judged:  # takes its turn in the judge's queue, for as long as that takes
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
        """Work that was let in costs so much more than was thought."""
        self._encoders.grow(turn.lane, tokens)
        if turn.lane is Lane.INTERACTIVE:
            self._shares.grow(turn.work.caller, tokens)

    def computed(self, tokens: int) -> None:
        """So many tokens were computed, of work that is here or has left."""
        self._encoders.rate.computed(tokens)

    def _end(self, turn: Admitted) -> None:
        """Learns what work has cost, and makes room for others."""
        work, caller = turn.work, turn.work.caller
        turn.ended = True
        self._costs.learn(caller.key, work.kind, work.size_bytes, turn.tokens)
        if turn.lane is Lane.INTERACTIVE:
            self._costs.learn(caller.key, _ANY_METRICS, 1, turn.tokens)
            self._shares.leave(caller, turn.counted_tokens)
        self._encoders.leave(turn.lane, turn.counted_tokens, turn.expected_tokens)
        self._turns.grant()

    def _check_loop(self, caller: Caller, left_s: float) -> None:
        """Raises OverloadedError where the event loop has too much to do, unless the caller has little in work."""
        loop = self._loop
        if not loop.is_late:
            return
        in_time = loop.wait_s < min(left_s, self._max_wait_s)
        if in_time and self._shares.has_few(caller, self._encoders.parts[Lane.INTERACTIVE]):
            return
        self._overload.refused()
        after_s = self._shares.promise(caller, 1 / max(1.0, loop.calls_per_s), _MAX_RETRY_S)
        raise _refusal(f"calls take {loop.wait_s:.2g} s for want of a processor; come back later", after_s)

    def _check_encoders(self, caller: Caller, tokens: float, left_s: float) -> None:
        """Raises OverloadedError where too much is before so many tokens, unless the caller has little in work."""
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
        raise _refusal(f"{wait_s:.2g} s of work are before this; come back later", after_s)

    def _tokens(self, work: Work) -> float:
        return self._costs.tokens(work.caller.key, work.kind, work.size_bytes)


def _refusal(message: str, after_s: float) -> OverloadedError:
    return OverloadedError(message, retry_after_s=min(_MAX_RETRY_S, max(_MIN_RETRY_S, after_s)))
