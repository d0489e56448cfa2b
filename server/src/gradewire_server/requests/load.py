"""The measured load: costs of requests, rate of encoders, rounds of the event loop, and what is in work for both.

Three quantities are learned here, each by one class: `CostEstimates`, `ServiceRate` and `LoopRounds`. All else is
counted from what is in work.
"""

import asyncio
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Final

from gradewire_server.domain.caller import Lane

# Costs of requests.
_UNKNOWN_TOKENS_PER_BYTE: Final = 1.0
_COST_WEIGHT: Final = 0.1
"""Weight of the newest request of a kind."""
_MAX_CALLERS: Final = 1024
_MAX_KINDS: Final = 32
"""Kinds of one caller, so that nobody can make the server forget what requests of others cost."""

# Rate of encoders.
_RATE_WINDOW_S: Final = 0.25
_RATE_RISE: Final = 0.5
_RATE_FALL: Final = 0.1
"""Weights of the newest window: a rate that is thought too low turns callers away, so it rises faster than it falls."""
_LEAST_COMPUTED_SHARE: Final = 0.25
"""Share of the expected tokens; where fewer were computed, the time went elsewhere: caches, words, failures."""
_SATURATED_S: Final = 0.05
"""Seconds of work that are in the server all through a window in which it does what it can."""

# Work of encoders.
_BULK_AHEAD_S: Final = 0.25
"""Seconds of bulk work that are let in at a time: enough to keep the encoder busy, and what one waits for behind it."""
_ALLOWED_WAIT_S: Final = 0.1
_ALLOWED_REQUESTS: Final = 8
"""Longest wait of small requests: so long, or what so many of their kind take. More in work would score nothing
sooner."""
_MIN_IN_WORK_TOKENS: Final = 320
"""Tokens of small requests, eight short rows, that are in work at a time where they may wait so long: with fewer the
encoder's batches would be small, the rate would fall, and still fewer would be let in. An encoder is at 97 % of its
speed with batches of 112 tokens, and 320 give two workers such a batch and what follows it."""

# Calls on the event loop.
_ROUNDS_TO_FIRST_STEP: Final = 2
"""Rounds that a call waits for its first step after gRPC has taken it in."""
_FIRST_STEPS_A_CALL: Final = 6
"""A call that is in the cache takes about so many times as long as its first step."""
_SOON_S: Final = 0.01
"""A call that waits no longer for its first step, two rounds of the loop, is done within about 60 ms of loop time."""
_PATIENCE_S: Final = 0.1
"""A backlog of less is a burst."""
_FEW_UNDER_WAY: Final = 160
"""With fewer calls under way the loop is late for another reason, such as other programs, and refusing them would mend
nothing. One connection may have 128 open."""

_OVERLOAD_PAUSE_S: Final = 2.0
"""Without a refusal for so long, overload is over."""


class CostEstimates:
    """Tokens by byte of request, for each kind of request of each caller."""

    def __init__(self) -> None:
        self._callers: OrderedDict[str, OrderedDict[Hashable, float]] = OrderedDict()

    def knows(self, caller: str, kind: Hashable) -> bool:
        """Return whether one of the kind was done lately."""
        return kind in self._callers.get(caller, ())

    def tokens(self, caller: str, kind: Hashable, size_bytes: int) -> float:
        """Return what a request of so many bytes will probably cost."""
        kinds = self._callers.get(caller)
        return size_bytes * (_UNKNOWN_TOKENS_PER_BYTE if kinds is None else kinds.get(kind, _UNKNOWN_TOKENS_PER_BYTE))

    def learn(self, caller: str, kind: Hashable, size_bytes: int, tokens: int) -> None:
        """Takes note of what one has cost."""
        if size_bytes <= 0:
            return
        kinds = self._callers.get(caller)
        if kinds is None:
            kinds = self._callers[caller] = OrderedDict()
            if len(self._callers) > _MAX_CALLERS:
                self._callers.popitem(last=False)
        self._callers.move_to_end(caller)
        measured = tokens / size_bytes
        known = kinds.get(kind)
        kinds[kind] = measured if known is None else known + _COST_WEIGHT * (measured - known)
        kinds.move_to_end(kind)
        if len(kinds) > _MAX_KINDS:
            kinds.popitem(last=False)


class ServiceRate:
    """Tokens that the server gets through in a second; 0 before anything was measured.

    A window counts against the rate only where work was waiting all through it, and this work was tokens: a quiet
    server is not a slow one, nor is one that finds everything in its caches.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.tokens_per_s = 0.0
        self._seen_s = clock()
        self._busy_s = 0.0
        self._computed_tokens = self._expected_tokens = 0.0
        self._pending_tokens = 0
        self._least_in_work = math.inf

    def began(self) -> None:
        """Work was begun where there was none: the time before does not count, nor what was computed in it."""
        self._seen_s = self._clock()
        self._pending_tokens = 0

    def computed(self, tokens: int) -> None:
        """So many tokens were computed, for whomever."""
        self._pending_tokens += tokens

    def left(self, expected_tokens: float, in_work_tokens: float) -> None:
        """Count work that has left, done or not, and all tokens that were in the server until now."""
        now_s = self._clock()
        self._busy_s += now_s - self._seen_s
        self._seen_s = now_s
        self._computed_tokens += self._pending_tokens
        self._pending_tokens = 0
        self._expected_tokens += expected_tokens
        self._least_in_work = min(self._least_in_work, in_work_tokens)
        if self._busy_s >= _RATE_WINDOW_S:
            self._learn(self._computed_tokens / self._busy_s)
            self._busy_s = self._computed_tokens = self._expected_tokens = 0.0
            self._least_in_work = math.inf

    def _learn(self, measured: float) -> None:
        computing = self._computed_tokens > 0 and self._computed_tokens >= _LEAST_COMPUTED_SHARE * self._expected_tokens
        # By what was measured, not by the rate: one that is far too high would call no server busy, and never fall.
        saturated = self._least_in_work > _SATURATED_S * measured
        if not self.tokens_per_s:
            self.tokens_per_s = measured if computing else 0.0
        elif measured > self.tokens_per_s:
            self.tokens_per_s += _RATE_RISE * (measured - self.tokens_per_s)
        elif saturated and computing:
            self.tokens_per_s += _RATE_FALL * (measured - self.tokens_per_s)


class EncoderBacklog:
    """Work of encoders, lane by lane: tokens in work, and the requests and parts of bulk work they are of.

    No small request waits longer than `max_wait_s`. Lives on one event loop.
    """

    def __init__(self, max_wait_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._max_wait_s = max_wait_s
        self.rate = ServiceRate(clock)
        self.in_work = {Lane.INTERACTIVE: 0.0, Lane.BULK: 0.0}
        self.parts = {Lane.INTERACTIVE: 0, Lane.BULK: 0}

    @property
    def wait_s(self) -> float:
        """Seconds that an interactive request would wait now for what is before it; 0 while that is not known."""
        rate = self.rate.tokens_per_s
        return self.in_work[Lane.INTERACTIVE] / rate if rate else 0.0

    @property
    def is_idle(self) -> bool:
        """Return whether nothing is in work."""
        return not any(self.parts.values())

    def is_small(self, tokens: float) -> bool:
        """Return whether so many tokens are soon done."""
        return tokens <= _BULK_AHEAD_S * self.rate.tokens_per_s

    def fits_bulk(self, tokens: float) -> bool:
        """Return whether encoders would not have too much bulk work before them with so much more."""
        return self.is_small(self.in_work[Lane.BULK] + tokens)

    def allowed_tokens(self, tokens: float) -> float:
        """Tokens of small requests that may be in work when one of so many comes.

        Requests that cost much come seldom and one by one; where a few of them are waiting it is no overload yet.
        """
        rate = self.rate.tokens_per_s
        allowed = max(_ALLOWED_WAIT_S * rate, _ALLOWED_REQUESTS * tokens, _MIN_IN_WORK_TOKENS)
        return min(allowed, self._max_wait_s * rate)

    def enter(self, lane: Lane, tokens: float) -> None:
        """Work was let in."""
        if self.is_idle:
            self.rate.began()
        self.in_work[lane] += tokens
        self.parts[lane] += 1

    def grow(self, lane: Lane, tokens: float) -> None:
        """Work that was let in costs so much more than was thought."""
        self.in_work[lane] += tokens

    def leave(self, lane: Lane, tokens: float, expected_tokens: float | None = None) -> None:
        """Count work that has left; `expected_tokens` is None for work that was never begun."""
        if expected_tokens is not None:
            self.rate.left(expected_tokens, sum(self.in_work.values()))
        self.parts[lane] -= 1
        self.in_work[lane] = max(0.0, self.in_work[lane] - tokens) if self.parts[lane] else 0.0


class LoopRounds:
    """The last round of one event loop; rounds are measured one at a time and only while calls begin.

    gRPC does not say when it has taken a call in. How long the loop needs to come round again tells what calls that
    begin now have waited: the round goes through all that is due, however short its single steps are.
    """

    def __init__(self) -> None:
        self._round_s: float | None = None
        self._measuring = False

    @property
    def waited_s(self) -> float | None:
        """Seconds that a call which begins now has waited for its first step; None until a round was measured."""
        return None if self._round_s is None else _ROUNDS_TO_FIRST_STEP * self._round_s

    def measure(self) -> None:
        """Measure the round that begins now, unless one is being measured."""
        if not self._measuring:
            self._measuring = True
            asyncio.get_running_loop().call_soon(self._came_round, time.perf_counter())

    def _came_round(self, began_s: float) -> None:
        self._measuring = False
        self._round_s = time.perf_counter() - began_s


class LoopBacklog:
    """Calls under way on one event loop, which its owner counts, and whether they are taken up late."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen_s = self._soon_s = clock()
        self._first_step_s = 0.0
        self.under_way = 0

    @property
    def wait_s(self) -> float:
        """Seconds that a call takes for the loop's sake, by the last one that began."""
        return self._first_step_s * _FIRST_STEPS_A_CALL

    @property
    def calls_per_s(self) -> float:
        """Calls that end in a second: those under way do within the time that one takes (Little's law)."""
        return self.under_way / self.wait_s if self.wait_s else 0.0

    @property
    def is_late(self) -> bool:
        """Return whether many calls are under way, and such have been taken up late for a while."""
        nobody_came = self._clock() - self._seen_s > self._first_step_s + _PATIENCE_S
        return not nobody_came and self.under_way >= _FEW_UNDER_WAY and self._seen_s - self._soon_s > _PATIENCE_S

    def began(self, waited_s: float) -> None:
        """Note that a call began, which waited so long for its first step."""
        now_s = self._clock()
        gap_s = now_s - self._seen_s
        self._seen_s, self._first_step_s = now_s, waited_s
        if waited_s <= _SOON_S or gap_s > waited_s + _PATIENCE_S:  # nobody was there who could have waited
            self._soon_s = now_s


class OverloadWatch:
    """Duration of an overload, from the refusals for want of time."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._first_s = self._last_s = -_OVERLOAD_PAUSE_S

    def refused(self) -> None:
        """A request was refused because too much work was before it."""
        now_s = self._clock()
        if now_s - self._last_s > _OVERLOAD_PAUSE_S:
            self._first_s = now_s
        self._last_s = now_s

    @property
    def lasts_s(self) -> float:
        """Seconds since refusals began that have not paused; 0 where none was for a while. Any thread may ask."""
        now_s = self._clock()
        return now_s - self._first_s if now_s - self._last_s <= _OVERLOAD_PAUSE_S else 0.0
