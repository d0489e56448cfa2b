"""How fast work is done, measured while there is enough of it."""

import time
from collections.abc import Callable
from typing import Final

_WINDOW_S: Final = 0.25
_RISE: Final = 0.5
_FALL: Final = 0.1
"""Weights of the newest window: a rate that is thought too low turns callers away, so it rises faster than it falls."""
_LEAST_SHARE: Final = 0.25
"""Of the tokens that were expected; where fewer were computed, the time went elsewhere: caches, words, failures."""


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
        self._finished_tokens = self._expected_tokens = 0.0
        self._was_saturated = True

    @property
    def tokens_per_s(self) -> float:
        """The rate; 0 before anything was measured."""
        return self._tokens_per_s

    def began(self) -> None:
        """Work was begun where there was none: the time before does not count."""
        self._seen_s = self._clock()

    def finished(self, tokens: float, expected_tokens: float, *, saturated: bool) -> None:
        """Work was done.

        Args:
            tokens: That were computed.
            expected_tokens: That were thought to be, when it was let in.
            saturated: As much as the server can do at once is still there.
        """
        now_s = self._clock()
        self._busy_s += now_s - self._seen_s
        self._seen_s = now_s
        self._finished_tokens += tokens
        self._expected_tokens += expected_tokens
        self._was_saturated &= saturated
        if self._busy_s >= _WINDOW_S:
            self._learn(self._finished_tokens / self._busy_s)
            self._busy_s = self._finished_tokens = self._expected_tokens = 0.0
            self._was_saturated = True

    def _learn(self, measured: float) -> None:
        computing = self._finished_tokens >= _LEAST_SHARE * self._expected_tokens
        if not self._tokens_per_s:
            self._tokens_per_s = measured if computing else 0.0
        elif measured > self._tokens_per_s:
            self._tokens_per_s += _RISE * (measured - self._tokens_per_s)
        elif self._was_saturated and computing:
            self._tokens_per_s += _FALL * (measured - self._tokens_per_s)
