"""Measure the load of the encoders and the event loop.

`CostEstimates`, `ServiceRate` and `LoopRounds` estimate the cost of requests, the encoders' rate and the duration of
the loop's rounds. The other classes count the work in progress.
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
"""Weight of the newest request in the estimate for its kind."""
_MAX_CALLERS: Final = 1024
_MAX_KINDS: Final = 32
"""Maximum number of request kinds per caller, so that no caller displaces the estimates for other callers."""

# Rate of encoders.
_RATE_WINDOW_S: Final = 0.25
_RATE_RISE: Final = 0.5
_RATE_FALL: Final = 0.1
"""Weights of the newest window. The estimate rises faster than it falls because too low an estimate refuses callers."""
_LEAST_COMPUTED_SHARE: Final = 0.25
"""Minimum share of the expected tokens that a window must compute. Other windows, spent on caches, word metrics or
failures, are ignored."""
_SATURATED_S: Final = 0.05
"""Seconds of work that must be queued throughout a window so that the encoders count as saturated."""

# Work of encoders.
_BULK_AHEAD_S: Final = 0.25
"""Seconds of bulk work admitted at a time. It keeps the encoder busy, and later work may have to wait this long."""
_ALLOWED_WAIT_S: Final = 0.1
_ALLOWED_REQUESTS: Final = 8
"""Maximum wait for small requests: `_ALLOWED_WAIT_S`, or the time for `_ALLOWED_REQUESTS` similar requests if that is
longer. More work in progress would not make the encoders faster."""
_MIN_IN_WORK_TOKENS: Final = 320
"""Tokens that small requests may always have in progress: eight short rows. With fewer, batches would become small, the
rate would fall, and even fewer tokens would be admitted. An encoder reaches 97 % of its speed with batches of 112
tokens; 320 tokens are one batch for each of two workers and most of the next."""

# Calls on the event loop.
_ROUNDS_TO_FIRST_STEP: Final = 2
"""Rounds of the loop between gRPC accepting a call and the call's first step."""
_FIRST_STEPS_A_CALL: Final = 6
"""Duration of a cached call, as a multiple of the wait for its first step."""
_SOON_S: Final = 0.01
"""Maximum wait for a call's first step (two rounds) if the loop is on time. Such a call takes about 60 ms in total."""
_PATIENCE_S: Final = 0.1
"""Seconds for which calls must start late before the loop counts as late. A shorter backlog is only a burst."""
_FEW_UNDER_WAY: Final = 160
"""Minimum number of calls in progress for the loop to count as late. With fewer calls, other programs cause the delay,
and refusals would not help. One connection may have 128 calls."""

_OVERLOAD_PAUSE_S: Final = 2.0
"""Seconds without a refusal after which an overload counts as over."""


class CostEstimates:
    """Estimated tokens per request byte, by caller and kind of request."""

    def __init__(self) -> None:
        self._callers: OrderedDict[str, OrderedDict[Hashable, float]] = OrderedDict()

    def knows(self, caller: str, kind: Hashable) -> bool:
        """Return True if the cost of the caller's requests of this kind is known."""
        return kind in self._callers.get(caller, ())

    def tokens(self, caller: str, kind: Hashable, size_bytes: int) -> float:
        """Return the estimated cost of a request in tokens."""
        kinds = self._callers.get(caller)
        return size_bytes * (_UNKNOWN_TOKENS_PER_BYTE if kinds is None else kinds.get(kind, _UNKNOWN_TOKENS_PER_BYTE))

    def learn(self, caller: str, kind: Hashable, size_bytes: int, tokens: int) -> None:
        """Update the estimate with the cost of a finished request."""
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
    """The encoders' measured rate in tokens per second, or 0 before the first measurement.

    A slow window lowers the rate only if tokens were waiting to be computed throughout the window. Otherwise, the
    server was idle or found everything in its caches.
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
        """Start to measure again after idle time. The idle time does not count."""
        self._seen_s = self._clock()
        self._pending_tokens = 0

    def computed(self, tokens: int) -> None:
        """Record computed tokens."""
        self._pending_tokens += tokens

    def left(self, expected_tokens: float, in_work_tokens: float) -> None:
        """Record ended work, finished or not, and the tokens that were in progress before it ended."""
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
        # Compare with the measured rate. With a far too high estimate, no window would count as saturated, so the
        # estimate would never fall.
        saturated = self._least_in_work > _SATURATED_S * measured
        if not self.tokens_per_s:
            self.tokens_per_s = measured if computing else 0.0
        elif measured > self.tokens_per_s:
            self.tokens_per_s += _RATE_RISE * (measured - self.tokens_per_s)
        elif saturated and computing:
            self.tokens_per_s += _RATE_FALL * (measured - self.tokens_per_s)


class EncoderBacklog:
    """The encoders' work in progress by lane, on one event loop: its tokens, and its number of requests or parts.

    Small requests may wait at most `max_wait_s`.
    """

    def __init__(self, max_wait_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._max_wait_s = max_wait_s
        self.rate = ServiceRate(clock)
        self.in_work = {Lane.INTERACTIVE: 0.0, Lane.BULK: 0.0}
        self.parts = {Lane.INTERACTIVE: 0, Lane.BULK: 0}

    @property
    def wait_s(self) -> float:
        """Seconds that an interactive request would wait now, or 0 if the rate is unknown."""
        rate = self.rate.tokens_per_s
        return self.in_work[Lane.INTERACTIVE] / rate if rate else 0.0

    @property
    def is_idle(self) -> bool:
        """True if no work is in progress."""
        return not any(self.parts.values())

    def is_small(self, tokens: float) -> bool:
        """Return True if computing this many tokens takes little time."""
        return tokens <= _BULK_AHEAD_S * self.rate.tokens_per_s

    def fits_bulk(self, tokens: float) -> bool:
        """Return True if bulk work with this many tokens can be added."""
        return self.is_small(self.in_work[Lane.BULK] + tokens)

    def allowed_tokens(self, tokens: float) -> float:
        """Return how many tokens small requests may have in progress when a request with `tokens` arrives.

        The limit grows with `tokens`, because a few waiting expensive requests, which are rare, are not an overload.
        """
        rate = self.rate.tokens_per_s
        allowed = max(_ALLOWED_WAIT_S * rate, _ALLOWED_REQUESTS * tokens, _MIN_IN_WORK_TOKENS)
        return min(allowed, self._max_wait_s * rate)

    def enter(self, lane: Lane, tokens: float) -> None:
        """Record admitted work."""
        if self.is_idle:
            self.rate.began()
        self.in_work[lane] += tokens
        self.parts[lane] += 1

    def grow(self, lane: Lane, tokens: float) -> None:
        """Record that admitted work costs more tokens than predicted."""
        self.in_work[lane] += tokens

    def leave(self, lane: Lane, tokens: float, expected_tokens: float | None = None) -> None:
        """Record the end of work. `expected_tokens` is None if the work never started."""
        if expected_tokens is not None:
            self.rate.left(expected_tokens, sum(self.in_work.values()))
        self.parts[lane] -= 1
        self.in_work[lane] = max(0.0, self.in_work[lane] - tokens) if self.parts[lane] else 0.0


class LoopRounds:
    """The duration of an event loop's last measured round. Rounds are measured only when calls start.

    gRPC does not report when it accepted a call. A round's duration shows how long new calls have waited, because a
    round runs everything that is due.
    """

    def __init__(self) -> None:
        self._round_s: float | None = None
        self._measuring = False

    @property
    def waited_s(self) -> float | None:
        """Seconds that a call starting now has waited for its first step, or None before the first measurement."""
        return None if self._round_s is None else _ROUNDS_TO_FIRST_STEP * self._round_s

    def measure(self) -> None:
        """Measure the round that starts now, unless a measurement is running."""
        if not self._measuring:
            self._measuring = True
            asyncio.get_running_loop().call_soon(self._came_round, time.perf_counter())

    def _came_round(self, began_s: float) -> None:
        self._measuring = False
        self._round_s = time.perf_counter() - began_s


class LoopBacklog:
    """The delay of calls on one event loop. The owner counts the calls in progress in `under_way`."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen_s = self._soon_s = clock()
        self._first_step_s = 0.0
        self.under_way = 0

    @property
    def wait_s(self) -> float:
        """Seconds that a call waits for the loop in total, estimated from the last call that started."""
        return self._first_step_s * _FIRST_STEPS_A_CALL

    @property
    def calls_per_s(self) -> float:
        """Calls that end per second: the calls in progress, divided by a call's duration (Little's law)."""
        return self.under_way / self.wait_s if self.wait_s else 0.0

    @property
    def is_late(self) -> bool:
        """True if many calls are in progress and calls have started late for a while."""
        nobody_came = self._clock() - self._seen_s > self._first_step_s + _PATIENCE_S
        return not nobody_came and self.under_way >= _FEW_UNDER_WAY and self._seen_s - self._soon_s > _PATIENCE_S

    def began(self, waited_s: float) -> None:
        """Record the start of a call and its wait for the first step."""
        now_s = self._clock()
        gap_s = now_s - self._seen_s
        self._seen_s, self._first_step_s = now_s, waited_s
        if waited_s <= _SOON_S or gap_s > waited_s + _PATIENCE_S:  # after a gap without calls, none can have waited
            self._soon_s = now_s


class OverloadWatch:
    """The duration of an overload, measured from refusals of small requests."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._first_s = self._last_s = -_OVERLOAD_PAUSE_S

    def refused(self) -> None:
        """Record that a request was refused because too much work is queued."""
        now_s = self._clock()
        if now_s - self._last_s > _OVERLOAD_PAUSE_S:
            self._first_s = now_s
        self._last_s = now_s

    @property
    def lasts_s(self) -> float:
        """Seconds since the first refusal of the current overload, or 0 without one. Any thread may read it."""
        now_s = self._clock()
        return now_s - self._first_s if now_s - self._last_s <= _OVERLOAD_PAUSE_S else 0.0
