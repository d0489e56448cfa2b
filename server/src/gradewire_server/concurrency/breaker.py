"""A circuit breaker: after too many failures in a while a backend is left alone until a probe finds it well."""

from collections import deque
from collections.abc import Callable
from enum import StrEnum


class BreakerState(StrEnum):
    """State of a breaker."""

    CLOSED = "closed"
    HALF_OPEN = "half_open"
    OPEN = "open"


class Breaker:
    """Counts failures within a window; knows nothing of what it guards.

    Closed, work goes on. `failures_to_open` failures within `window_s` open it: callers leave the backend alone. Its
    owner probes then (`probing`), and the probe's outcome closes it or opens it again.

    Args:
        failures_to_open: See above, 1 or more.
        window_s: See above.
        clock: Monotonic seconds.
        changed: Called with every new state.
    """

    def __init__(
        self,
        *,
        failures_to_open: int,
        window_s: float,
        clock: Callable[[], float],
        changed: Callable[[BreakerState], None],
    ) -> None:
        self._window_s = window_s
        self._clock = clock
        self._changed = changed
        self._failures: deque[float] = deque(maxlen=failures_to_open)
        self.state = BreakerState.CLOSED

    @property
    def closed(self) -> bool:
        """Whether the backend may be used."""
        return self.state is BreakerState.CLOSED

    def succeeded(self) -> None:
        """A call went well; closes a breaker that was probing."""
        if self.state is BreakerState.HALF_OPEN:
            self._failures.clear()
            self._become(BreakerState.CLOSED)

    def failed(self) -> None:
        """A call failed or took too long."""
        if self.state is BreakerState.HALF_OPEN:
            self._become(BreakerState.OPEN)
            return
        now_s = self._clock()
        self._failures.append(now_s)
        full = len(self._failures) == self._failures.maxlen
        if self.closed and full and now_s - self._failures[0] <= self._window_s:
            self._become(BreakerState.OPEN)

    def open(self) -> None:
        """The backend is known to be of no use now, whatever was counted."""
        if self.state is not BreakerState.OPEN:
            self._become(BreakerState.OPEN)

    def probing(self) -> None:
        """An open breaker's owner tries the backend once; the next outcome decides."""
        if self.state is BreakerState.OPEN:
            self._become(BreakerState.HALF_OPEN)

    def _become(self, state: BreakerState) -> None:
        self.state = state
        self._changed(state)
