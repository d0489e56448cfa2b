"""The one policy of repeating: the waits between tries, and which failures of a call are tried again until when.

gRPC's own policy ends after five attempts, 1.5 s, and is switched off (ADR 20). Every call of both clients asks here:
requests of `score` and `submit`, streams, preparations, `models`.
"""

import logging
import math
import random
import time
from asyncio import sleep
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar

from gradewire.errors import Overloaded, ServerUnreachable, TransportError

# So that the clients of a server that restarts do not come back all at once.
_JITTER = 0.2
_FIRST_WAIT_S = 0.1
_LONGEST_WAIT_S = 2.0
# With less time than this left, another attempt answers nothing.
_TOO_LATE_S = 0.05
# A restart takes a few seconds; what takes longer, people should know of. Many calls fail at a time: one says it.
_LOG_AFTER_S = 3.0
_LOG_AGAIN_AFTER_S = 10.0

_log = logging.getLogger("gradewire.retries")

T = TypeVar("T")

_logged_at = -_LOG_AGAIN_AFTER_S


@dataclass(slots=True)
class Backoff:
    """Waits between tries: each twice as long as the one before, and spread by a fifth."""

    first_s: float
    longest_s: float
    failures: int = 0

    def failed(self, retry_after_s: float | None = None, most_s: float = math.inf) -> float:
        """Note a failure; return the seconds until the next try: what the server asks for, or at most `most_s`."""
        self.failures += 1
        if retry_after_s:
            return retry_after_s * random.uniform(1, 1 + _JITTER)  # noqa: S311 - spreads load, hides nothing
        wait_s = min(self.first_s * 2.0 ** min(self.failures - 1, 30), self.longest_s, most_s)
        return wait_s * random.uniform(1 - _JITTER, 1 + _JITTER)  # noqa: S311 - as above

    def reset(self) -> None:
        """Begin again with the first wait: something was answered."""
        self.failures = 0


class Retries:
    """The retries of one call: which failures are tried again, and when.

    Args:
        left_s: Seconds until the deadline, 0 or less behind it; no attempt starts then.
        resumed_after: Failures that are tried again besides an unreachable or overloaded server: those by which a
            server ends a call that can be taken up where it was.
    """

    def __init__(self, left_s: Callable[[], float], *, resumed_after: tuple[type[TransportError], ...] = ()) -> None:
        self._left_s = left_s
        self._tried_again_after: tuple[type[TransportError], ...] = (ServerUnreachable, Overloaded, *resumed_after)
        self._backoff = Backoff(_FIRST_WAIT_S, _LONGEST_WAIT_S)
        self._failing_since = 0.0
        self._last: TransportError | None = None
        self._reported = False

    def progressed(self) -> None:
        """Something was answered since the last failure: waits are short again."""
        if self._reported:
            _log.warning("the server answers again, after %.1f s", time.monotonic() - self._failing_since)
        self._backoff.reset()
        self._last = None
        self._reported = False

    async def wait_after(self, error: TransportError) -> None:
        """Wait until the next attempt.

        Raises:
            TransportError: The error, with what was tried: the deadline is too near, or trying again cannot help.
        """
        if not (isinstance(error, self._tried_again_after) and error.may_pass):
            raise self.with_attempts(error)
        if not self._backoff.failures:
            self._failing_since = time.monotonic()
        self._last = error
        left_s = self._left_s()
        # The last seconds have several attempts: a server may come back in them.
        wait_s = self._backoff.failed(error.retry_after_s, max(left_s / 2, _FIRST_WAIT_S))
        if wait_s + _TOO_LATE_S > left_s:
            raise self.with_attempts(error)
        self._report(error, left_s)
        await sleep(wait_s)

    def with_attempts(self, error: TransportError) -> TransportError:
        """Return the error with the attempts before it in its message; itself where there were none."""
        if self._last is None:
            return error
        attempts = self._backoff.failures + (error is not self._last)
        tried = "once" if attempts == 1 else f"{attempts} times"
        before = "" if error is self._last else f"; before that: {self._last}"
        passed_s = time.monotonic() - self._failing_since
        failure = type(error)(f"{_sentence(error)}. Tried {tried} in {passed_s:.1f} s{before}")
        failure.retry_after_s, failure.may_pass, failure.__cause__ = error.retry_after_s, error.may_pass, error
        return failure

    def _report(self, error: TransportError, left_s: float) -> None:
        global _logged_at
        now = time.monotonic()
        if self._reported or now - self._failing_since < _LOG_AFTER_S or now - _logged_at < _LOG_AGAIN_AFTER_S:
            return
        self._reported, _logged_at = True, now
        until = datetime.now().astimezone() + timedelta(seconds=left_s)
        _log.warning("%s; trying again until %s", _sentence(error), f"{until:%H:%M:%S}")


async def until_answered(call: Callable[[], Awaitable[T]], retries: Retries) -> T:
    """Make a call again and again, as `retries` says; raises as `Retries.wait_after`."""
    while True:
        try:
            reply = await call()
        except TransportError as error:
            await retries.wait_after(error)
        else:
            retries.progressed()
            return reply


def _sentence(error: TransportError) -> str:
    return str(error).rstrip(".")
