"""Tells a burst from overload that lasts."""

import time
from collections.abc import Callable
from typing import Final

_PAUSE_S: Final = 2.0
"""Without a refusal for so long, overload is over."""


class OverloadWatch:
    """Told of every refusal for want of time.

    Args:
        clock: Monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._first_s = self._last_s = -_PAUSE_S

    def refused(self) -> None:
        """A request was refused because too much work was before it."""
        now_s = self._clock()
        if now_s - self._last_s > _PAUSE_S:
            self._first_s = now_s
        self._last_s = now_s

    @property
    def lasts_s(self) -> float:
        """Seconds since refusals began that have not paused; 0 where none was for a while. Any thread may ask."""
        now_s = self._clock()
        return now_s - self._first_s if now_s - self._last_s <= _PAUSE_S else 0.0
