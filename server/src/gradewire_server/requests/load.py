"""Estimate costs, rates and delays for admission control, and count the work in progress."""

import asyncio
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Final

from gradewire_server.domain.caller import Lane

# Request costs.
_UNKNOWN_TOKENS_PER_BYTE: Final = 1.0
_COST_WEIGHT: Final = 0.1
_MAX_CALLERS: Final = 1024
_MAX_KINDS: Final = 32

# The encoders' rate.
_RATE_WINDOW_S: Final = 0.25
_RATE_RISE: Final = 0.5
_RATE_FALL: Final = 0.1
"""The newest window's weight in the estimate: `_RATE_RISE` for a rising rate, `_RATE_FALL` for a falling rate."""
_LEAST_COMPUTED_SHARE: Final = 0.25
"""A window is ignored if the encoders computed less than this share of the expected tokens."""
_SATURATED_S: Final = 0.05
"""Encoders count as saturated if work for this many seconds was queued throughout a window."""

# The encoders' work.
_BULK_AHEAD_S: Final = 0.25
"""The amount of bulk work, in seconds, that is admitted at a time."""
_ALLOWED_WAIT_S: Final = 0.1
_ALLOWED_REQUESTS: Final = 8
"""A small request may wait for the longer of `_ALLOWED_WAIT_S` and the duration of this many similar requests."""
_MIN_IN_WORK_TOKENS: Final = 320
"""The number of tokens that all small requests together may always have in progress, so that batches are large."""

# Calls on the event loop.
_ROUNDS_TO_FIRST_STEP: Final = 2
"""The number of loop rounds from a call's arrival to its first step."""
_FIRST_STEPS_A_CALL: Final = 6
"""A cached call's duration, as a multiple of the wait for its first step."""
_SOON_S: Final = 0.01
"""The maximum wait for a call's first step if the loop is on time."""
_PATIENCE_S: Final = 0.1
"""If calls have been starting late for this many seconds, the loop counts as late."""
_FEW_UNDER_WAY: Final = 160
"""The loop counts as late only if at least this many calls are in progress. With fewer calls, other programs cause the
delay."""

_OVERLOAD_PAUSE_S: Final = 2.0
"""An overload is over after this many seconds without a refusal."""


class CostEstimates:
    """The estimated number of tokens per request byte, by caller and request kind."""

    def __init__(self) -> None:
        self._callers: OrderedDict[str, OrderedDict[Hashable, float]] = OrderedDict()

    def knows(self, caller: str, kind: Hashable) -> bool:
        """Return True if there is an estimate for the caller's requests of this kind."""
        return kind in self._callers.get(caller, ())

    def tokens(self, caller: str, kind: Hashable, size_bytes: int) -> float:
        """Return a request's estimated cost in tokens."""
        kinds = self._callers.get(caller)
        return size_bytes * (_UNKNOWN_TOKENS_PER_BYTE if kinds is None else kinds.get(kind, _UNKNOWN_TOKENS_PER_BYTE))

    def learn(self, caller: str, kind: Hashable, size_bytes: int, tokens: int) -> None:
        """Update the estimate with a finished request's cost."""
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
    """The encoders' measured rate, or 0 before the first measurement.

    A slow window lowers the rate only if tokens were queued throughout the window.
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
        """Start a new measurement after idle time."""
        self._seen_s = self._clock()
        self._pending_tokens = 0

    def computed(self, tokens: int) -> None:
        """Record that an encoder computed `tokens`."""
        self._pending_tokens += tokens

    def left(self, expected_tokens: float, in_work_tokens: float) -> None:
        """Record that work has ended. `in_work_tokens` is the number of tokens in progress before the end."""
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
        # Use the measured rate, because a far too high estimate would never fall.
        saturated = self._least_in_work > _SATURATED_S * measured
        if not self.tokens_per_s:
            self.tokens_per_s = measured if computing else 0.0
        elif measured > self.tokens_per_s:
            self.tokens_per_s += _RATE_RISE * (measured - self.tokens_per_s)
        elif saturated and computing:
            self.tokens_per_s += _RATE_FALL * (measured - self.tokens_per_s)


class EncoderBacklog:
    """The encoders' work in progress on one event loop, by lane, in tokens and in pieces of work."""

    def __init__(self, max_wait_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._max_wait_s = max_wait_s
        self.rate = ServiceRate(clock)
        self.in_work = {Lane.INTERACTIVE: 0.0, Lane.BULK: 0.0}
        self.parts = {Lane.INTERACTIVE: 0, Lane.BULK: 0}

    @property
    def wait_s(self) -> float:
        """The seconds that an interactive request would wait now, or 0 if the rate is unknown."""
        rate = self.rate.tokens_per_s
        return self.in_work[Lane.INTERACTIVE] / rate if rate else 0.0

    @property
    def is_idle(self) -> bool:
        """True if no work is in progress."""
        return not any(self.parts.values())

    def is_small(self, tokens: float) -> bool:
        """Return True if the encoders compute this many tokens within `_BULK_AHEAD_S`."""
        return tokens <= _BULK_AHEAD_S * self.rate.tokens_per_s

    def fits_bulk(self, tokens: float) -> bool:
        """Return True if bulk work with this many tokens can be admitted now."""
        return self.is_small(self.in_work[Lane.BULK] + tokens)

    def allowed_tokens(self, tokens: float) -> float:
        """Return how many tokens may be in progress when a small request with `tokens` is admitted."""
        rate = self.rate.tokens_per_s
        allowed = max(_ALLOWED_WAIT_S * rate, _ALLOWED_REQUESTS * tokens, _MIN_IN_WORK_TOKENS)
        return min(allowed, self._max_wait_s * rate)

    def enter(self, lane: Lane, tokens: float) -> None:
        """Record that work was admitted."""
        if self.is_idle:
            self.rate.began()
        self.in_work[lane] += tokens
        self.parts[lane] += 1

    def grow(self, lane: Lane, tokens: float) -> None:
        """Add `tokens` to the cost of admitted work."""
        self.in_work[lane] += tokens

    def leave(self, lane: Lane, tokens: float, expected_tokens: float | None = None) -> None:
        """Record that work has ended. `expected_tokens` is None if the work never started."""
        if expected_tokens is not None:
            self.rate.left(expected_tokens, sum(self.in_work.values()))
        self.parts[lane] -= 1
        self.in_work[lane] = max(0.0, self.in_work[lane] - tokens) if self.parts[lane] else 0.0


class LoopRounds:
    """The duration of an event loop's rounds, which shows how long new calls have waited."""

    def __init__(self) -> None:
        self._round_s: float | None = None
        self._measuring = False

    @property
    def waited_s(self) -> float | None:
        """The estimated waiting time of a call that starts now, in seconds, or None before the first measurement."""
        return None if self._round_s is None else _ROUNDS_TO_FIRST_STEP * self._round_s

    def measure(self) -> None:
        """Measure how long the event loop's next round takes, unless a measurement is already running."""
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
        """The estimated seconds that a call waits for the loop in total."""
        return self._first_step_s * _FIRST_STEPS_A_CALL

    @property
    def calls_per_s(self) -> float:
        """The estimated number of calls that end per second (Little's law)."""
        return self.under_way / self.wait_s if self.wait_s else 0.0

    @property
    def is_late(self) -> bool:
        """True if many calls are in progress and calls have started late for more than `_PATIENCE_S`."""
        nobody_came = self._clock() - self._seen_s > self._first_step_s + _PATIENCE_S
        return not nobody_came and self.under_way >= _FEW_UNDER_WAY and self._seen_s - self._soon_s > _PATIENCE_S

    def began(self, waited_s: float) -> None:
        """Record that a call has started after waiting for `waited_s`."""
        now_s = self._clock()
        gap_s = now_s - self._seen_s
        self._seen_s, self._first_step_s = now_s, waited_s
        if waited_s <= _SOON_S or gap_s > waited_s + _PATIENCE_S:
            self._soon_s = now_s


class OverloadWatch:
    """A measurement of how long an overload has lasted, based on the times of refusals."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._first_s = self._last_s = -_OVERLOAD_PAUSE_S

    def refused(self) -> None:
        """Record that a request was refused because of overload."""
        now_s = self._clock()
        if now_s - self._last_s > _OVERLOAD_PAUSE_S:
            self._first_s = now_s
        self._last_s = now_s

    @property
    def lasts_s(self) -> float:
        """The seconds since the current overload began, or 0 without overload. Thread-safe."""
        now_s = self._clock()
        return now_s - self._first_s if now_s - self._last_s <= _OVERLOAD_PAUSE_S else 0.0
