"""What encoders have before them, and how long a small request would wait for it."""

import time
from collections.abc import Callable
from typing import Final

from gradewire_server.domain.turn import Lane
from gradewire_server.requests.admission.service_rate import ServiceRate

BULK_AHEAD_S: Final = 0.25
"""Seconds of bulk work that are let in at a time: enough to keep the encoder busy, and what one waits for behind it."""
FREE_TOKENS: Final = 4
"""A request that costs no more waits for nothing: its answer and its references are in the cache."""
_STANDING_WAIT_S: Final = 0.1
_STANDING_REQUESTS: Final = 8
"""Longest wait where requests come faster than they are done: so long, or what so many of this kind take. More in work
would score nothing sooner."""
_BURST: Final = 2.0
"""So many times as long they may wait, and come faster, before it counts as that."""
_CALM: Final = 0.5
"""They have not come faster than they are done if no more than this part of the standing wait is waiting."""
_MIN_IN_WORK_TOKENS: Final = 320
"""Tokens of small requests, eight short rows, that are in work at a time where they may wait so long: with fewer the
encoder's batches would be small, the rate would fall, and still fewer would be let in. An encoder is at 97 % of its
speed with batches of 112 tokens, and 320 give two workers such a batch and what follows it."""


class EncoderBacklog:
    """Tokens in work, lane by lane. Lives on one event loop.

    Args:
        max_wait_s: No small request waits longer.
        clock: Monotonic seconds.
    """

    def __init__(self, max_wait_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._max_wait_s = max_wait_s
        self._clock = clock
        self._rate = ServiceRate(clock)
        self._in_work = {Lane.INTERACTIVE: 0.0, Lane.BULK: 0.0}
        self._parts = {Lane.INTERACTIVE: 0, Lane.BULK: 0}
        self._calm_s = clock()

    @property
    def tokens_per_s(self) -> float:
        """What encoders get through, as measured; 0 before anything was."""
        return self._rate.tokens_per_s

    @property
    def wait_s(self) -> float:
        """Seconds that an interactive request would wait now for what is before it; 0 while that is not known."""
        rate = self._rate.tokens_per_s
        return self._in_work[Lane.INTERACTIVE] / rate if rate else 0.0

    @property
    def is_calm(self) -> bool:
        """Whether hardly anything waits."""
        return self.wait_s < _CALM * _STANDING_WAIT_S

    @property
    def is_idle(self) -> bool:
        """Whether nothing is in work."""
        return not any(self._parts.values())

    @property
    def bulk_parts(self) -> int:
        """Parts of bulk work that are in work."""
        return self._parts[Lane.BULK]

    @property
    def interactive_tokens(self) -> float:
        """Tokens of small requests that are in work."""
        return self._in_work[Lane.INTERACTIVE]

    def is_small(self, tokens: float) -> bool:
        """Whether so many tokens are soon done."""
        return tokens <= BULK_AHEAD_S * self._rate.tokens_per_s

    def fits_bulk(self, tokens: float) -> bool:
        """Whether encoders would not have too much bulk work before them with so much more."""
        return self._in_work[Lane.BULK] + tokens <= BULK_AHEAD_S * self._rate.tokens_per_s

    def allowed_tokens(self, tokens: float) -> float:
        """Tokens of small requests that may be in work when one of so many comes.

        Requests that cost much come seldom and one by one; where a few of them are waiting it is no overload yet.
        """
        rate = self._rate.tokens_per_s
        standing_s = max(_STANDING_WAIT_S, _STANDING_REQUESTS * tokens / rate)
        burst_s = _BURST * standing_s
        is_standing = self._clock() - self._calm_s > burst_s
        longest_s = max(standing_s if is_standing else burst_s, _MIN_IN_WORK_TOKENS / rate)
        return min(longest_s, self._max_wait_s) * rate

    def enter(self, lane: Lane, tokens: float) -> None:
        """Work was let in."""
        if self.is_idle:
            self._rate.began()
        self._in_work[lane] += tokens
        self._parts[lane] += 1

    def grow(self, lane: Lane, tokens: float) -> None:
        """Work that was let in costs so much more than was thought."""
        self._in_work[lane] += tokens

    def done(self, expected_tokens: float) -> None:
        """Work that was thought to cost so much is about to leave, done or not."""
        self._rate.left(expected_tokens, sum(self._in_work.values()))

    def leave(self, lane: Lane, tokens: float) -> None:
        """Work has left that counted for so much in all."""
        self._parts[lane] -= 1
        self._in_work[lane] = max(0.0, self._in_work[lane] - tokens) if self._parts[lane] else 0.0
        if self.is_calm:
            self._calm_s = self._clock()

    def computed(self, tokens: int) -> None:
        """So many tokens were computed, of work that is here or has left."""
        self._rate.computed(tokens)
