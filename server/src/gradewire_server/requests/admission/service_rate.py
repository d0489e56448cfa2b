"""How fast work is done, measured while there is enough of it."""

import math
import time
from collections.abc import Callable
from typing import Final

_WINDOW_S: Final = 0.25
_RISE: Final = 0.5
_FALL: Final = 0.1
"""Weights of the newest window: a rate that is thought too low turns callers away, so it rises faster than it falls."""
_LEAST_SHARE: Final = 0.25
"""Of the tokens that were expected; where fewer were computed, the time went elsewhere: caches, words, failures."""


_SATURATED_S: Final = 0.05
"""Seconds of work that are in the server all through a window in which it does what it can."""


class ServiceRate:
    """Tokens that the server gets through in a second.

    A window counts against the rate only where work was waiting all through it, and this work was tokens: a quiet
    server is not a slow one, nor is one that finds everything in its caches.

    Args:
        clock: Monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._tokens_per_s = 0.0
        self._seen_s = clock()
        self._busy_s = 0.0
        self._computed_tokens = self._expected_tokens = 0.0
        self._pending_tokens = 0
        self._least_in_work = math.inf

    @property
    def tokens_per_s(self) -> float:
        """The rate; 0 before anything was measured."""
        return self._tokens_per_s

    def began(self) -> None:
        """Work was begun where there was none: the time before does not count, nor what was computed in it."""
        self._seen_s = self._clock()
        self._pending_tokens = 0

    def computed(self, tokens: int) -> None:
        """So many tokens were computed, for whomever."""
        self._pending_tokens += tokens

    def left(self, expected_tokens: float, in_work_tokens: float) -> None:
        """Work has left, done or not.

        Args:
            expected_tokens: That it was thought to cost.
            in_work_tokens: Of all work that was in the server until now, this one included.
        """
        now_s = self._clock()
        self._busy_s += now_s - self._seen_s
        self._seen_s = now_s
        self._computed_tokens += self._pending_tokens
        self._pending_tokens = 0
        self._expected_tokens += expected_tokens
        self._least_in_work = min(self._least_in_work, in_work_tokens)
        if self._busy_s >= _WINDOW_S:
            self._learn(self._computed_tokens / self._busy_s)
            self._busy_s = self._computed_tokens = self._expected_tokens = 0.0
            self._least_in_work = math.inf

    def _learn(self, measured: float) -> None:
        computing = self._computed_tokens > 0 and self._computed_tokens >= _LEAST_SHARE * self._expected_tokens
        # By what was measured, not by the rate: one that is far too high would call no server busy, and never fall.
        saturated = self._least_in_work > _SATURATED_S * measured
        if not self._tokens_per_s:
            self._tokens_per_s = measured if computing else 0.0
        elif measured > self._tokens_per_s:
            self._tokens_per_s += _RISE * (measured - self._tokens_per_s)
        elif saturated and computing:
            self._tokens_per_s += _FALL * (measured - self._tokens_per_s)
