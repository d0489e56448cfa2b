"""How far the event loop is behind: with calls that are in the cache it is full before any encoder is.

Every call tells how long it waited for its first step. Where the loop has little to do that is next to nothing, and it
grows with all that the loop has to do before it comes round again. One long step, or a burst, is no backlog: the loop
is behind when no call has been taken up soon for a while, as in CoDel (Nichols and Jacobson 2012), and many are under
way.
"""

import time
from collections.abc import Callable
from typing import Final

_SOON_S: Final = 0.01
"""A call that waits no longer for its first step, two rounds of the loop, is done within about 60 ms of loop time."""
_TURNS: Final = 6
"""A call that is in the cache takes about so many times as long as its first step."""
_PATIENCE_S: Final = 0.1
"""A backlog of less is a burst."""
_SHORT_PATIENCE_S: Final = 0.02
"""The same while calls are refused anyway."""
_PAUSE_S: Final = 1.0
"""Without a refusal for so long, the next burst has the usual patience."""
_FEW: Final = 160
"""With fewer calls under way the loop is late for another reason, such as other programs, and refusing them would mend
nothing. One connection may have 128 open."""
_RATE_WINDOW_S: Final = 0.25
_RATE_WEIGHT: Final = 0.3


class LoopBacklog:
    """Learns from calls; belongs to one event loop.

    Args:
        clock: Monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen_s = self._soon_s = self._window_s = clock()
        self._refused_s = -_PAUSE_S
        self._turn_s = 0.0
        self._under_way = 0
        self._let_in = 0
        self._let_in_per_s = 0.0

    @property
    def wait_s(self) -> float:
        """Seconds that a call takes for the loop's sake, by the last one that began."""
        return self._turn_s * _TURNS

    @property
    def is_behind(self) -> bool:
        """Whether many calls are under way, and such have been taken up late for a while."""
        if self._clock() - self._seen_s > self._turn_s + _PATIENCE_S:
            return False  # nobody came lately
        patience_s = _SHORT_PATIENCE_S if self._seen_s - self._refused_s < _PAUSE_S else _PATIENCE_S
        return self._under_way >= _FEW and self._seen_s - self._soon_s > patience_s

    @property
    def calls_per_s(self) -> float:
        """Calls that were let in a second, lately; 0 while that is not known."""
        return self._let_in_per_s

    def began(self, waited_s: float) -> None:
        """A call began.

        Args:
            waited_s: For its first step.
        """
        now_s = self._clock()
        gap_s = now_s - self._seen_s
        self._seen_s, self._turn_s = now_s, waited_s
        if waited_s <= _SOON_S or gap_s > waited_s + _PATIENCE_S:  # nobody was there who could have waited
            self._soon_s = now_s

    def entered(self) -> None:
        """A call was let in; `left` is called at its end."""
        self._under_way += 1
        self._let_in += 1
        now_s = self._clock()
        if now_s - self._window_s >= _RATE_WINDOW_S:
            measured = self._let_in / (now_s - self._window_s)
            self._let_in_per_s += (_RATE_WEIGHT if self._let_in_per_s else 1.0) * (measured - self._let_in_per_s)
            self._let_in, self._window_s = 0, now_s

    def left(self) -> None:
        """A call that was let in has ended."""
        self._under_way -= 1

    def refused(self) -> None:
        """A call was refused for it."""
        self._refused_s = self._clock()
