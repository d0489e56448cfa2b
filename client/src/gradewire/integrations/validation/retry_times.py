"""When a step that was not scored is tried again."""

import random
from dataclasses import dataclass, field
from typing import Final

from gradewire.errors import TransportError

_FIRST_WAIT_S: Final = 0.5
_LONGEST_WAIT_S: Final = 30.0
# What the server refuses is refused again until somebody changes something there.
_REFUSED_WAIT_S: Final = 60.0
_JITTER: Final = 0.2


@dataclass(slots=True)
class _Failures:
    count: int = 0
    due_s: float = 0.0


@dataclass(slots=True)
class RetryTimes:
    """Clocks are monotonic seconds.

    A server that cannot be reached is tried by one step after the other, at growing intervals; a step that was refused
    waits a minute and lets others go first.
    """

    _steps: dict[int, _Failures] = field(default_factory=dict)
    _server_failures: int = 0
    _server_due_s: float = 0.0

    def failed(self, sequence: int, error: Exception, now_s: float) -> float:
        """Notes a failure; seconds until the step is due again."""
        failures = self._steps.setdefault(sequence, _Failures())
        failures.count += 1
        if isinstance(error, TransportError) and error.may_pass:
            self._server_failures += 1
            grown = min(_FIRST_WAIT_S * 2.0 ** min(self._server_failures - 1, 30), _LONGEST_WAIT_S)
            wait_s = (error.retry_after_s or grown) * random.uniform(1, 1 + _JITTER)  # noqa: S311 - spreads load
            self._server_due_s = now_s + wait_s
        else:
            wait_s = _REFUSED_WAIT_S
        failures.due_s = now_s + wait_s
        return wait_s

    def answered(self) -> None:
        """The server is there."""
        self._server_failures = 0
        self._server_due_s = 0.0

    def ended(self, sequence: int) -> None:
        """The step needs no more tries."""
        self._steps.pop(sequence, None)

    def order(self, sequence: int) -> tuple[int, int]:
        """Whose turn comes first: the fewest failures, then the oldest."""
        return self.failures(sequence), sequence

    def failures(self, sequence: int) -> int:
        """How often the step was tried in vain, by this process."""
        return self._steps[sequence].count if sequence in self._steps else 0

    def due_s(self, sequence: int) -> float:
        """When it may be tried."""
        return max(self._server_due_s, self._steps[sequence].due_s if sequence in self._steps else 0.0)
