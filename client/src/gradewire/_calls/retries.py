"""The retry policy of all calls: which failures to retry, how long to wait, and when to give up.

gRPC's built-in retries are off, because gRPC gives up after five attempts, within 1.5 s (ADR 20).
"""

import logging
import math
import random
import time
from asyncio import sleep
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Final, TypeVar

from gradewire.errors import Overloaded, ServerUnreachable, TransportError
from gradewire_proto.wire_rules import Backoff

SPREAD: Final = (0.8, 1.2)
"""Range of the random factor for waits, so that a restarting server's clients do not all return at once."""
_BACKOFF = Backoff(0.1, 2.0, SPREAD)
# An attempt with less time left cannot succeed.
_TOO_LATE_S = 0.05
# A server's restart takes a few seconds, so log only longer failures. If many calls fail at once, only one call logs.
_LOG_AFTER_S = 3.0
_LOG_AGAIN_AFTER_S = 10.0

_log = logging.getLogger("gradewire.retries")

T = TypeVar("T")

_logged_at = -_LOG_AGAIN_AFTER_S


def wait_after_s(error: TransportError, backoff: Backoff, failures: int, most_s: float = math.inf) -> float:
    """Return the seconds to wait before a retry.

    If the server names a time, the wait is that time plus up to 20 %. Otherwise, it is the back-off's wait.
    """
    if error.retry_after_s:
        return error.retry_after_s * random.uniform(1, SPREAD[1])  # noqa: S311 - no secret
    return backoff.wait_s(failures, most_s)


class Retries:
    """The retries of one call.

    Args:
        left_s: A function that returns the seconds until the deadline.
        resumed_after: Errors to retry in addition to ServerUnreachable and Overloaded, because the call can resume.
    """

    def __init__(self, left_s: Callable[[], float], *, resumed_after: tuple[type[TransportError], ...] = ()) -> None:
        self._left_s = left_s
        self._retried: tuple[type[TransportError], ...] = (ServerUnreachable, Overloaded, *resumed_after)
        self._failures = 0
        self._failing_since = 0.0
        self._last: TransportError | None = None
        self._reported = False

    def progressed(self) -> None:
        """Record an answer. A later failure counts as the first failure."""
        if self._reported:
            _log.warning("the server answers again after %.1f s", time.monotonic() - self._failing_since)
        self._failures = 0
        self._last = None
        self._reported = False

    async def wait_after(self, error: TransportError) -> None:
        """Wait until the next attempt.

        Raises:
            TransportError: The deadline is too near, or a retry cannot help.
        """
        if not (isinstance(error, self._retried) and error.may_pass):
            raise self.with_attempts(error)
        if not self._failures:
            self._failing_since = time.monotonic()
        self._failures += 1
        self._last = error
        left_s = self._left_s()
        # Make several attempts in the last seconds, in case the server returns.
        wait_s = wait_after_s(error, _BACKOFF, self._failures, max(left_s / 2, _BACKOFF.first_s))
        if wait_s + _TOO_LATE_S > left_s:
            raise self.with_attempts(error)
        self._report(error, left_s)
        await sleep(wait_s)

    def with_attempts(self, error: TransportError) -> TransportError:
        """Return the error. If there were earlier attempts, add their number and duration to the message."""
        if self._last is None:
            return error
        attempts = self._failures + (error is not self._last)
        tried = "once" if attempts == 1 else f"{attempts} times"
        before = "" if error is self._last else f"; before that: {self._last}"
        passed_s = time.monotonic() - self._failing_since
        failure = type(error)(f"{_sentence(error)}. Tried {tried} in {passed_s:.1f} s{before}")
        failure.retry_after_s, failure.may_pass = error.retry_after_s, error.may_pass
        # The message says all that `error` says, so a traceback shows only the causes of the server's defects.
        failure.__cause__, failure.__context__ = error.__cause__, error
        failure.__suppress_context__ = True
        return failure

    def _report(self, error: TransportError, left_s: float) -> None:
        global _logged_at
        now = time.monotonic()
        if self._reported or now - self._failing_since < _LOG_AFTER_S or now - _logged_at < _LOG_AGAIN_AFTER_S:
            return
        self._reported, _logged_at = True, now
        until = datetime.now().astimezone() + timedelta(seconds=left_s)
        _log.warning("%s; retrying until %s", _sentence(error), f"{until:%H:%M:%S}")


async def until_answered(call: Callable[[], Awaitable[T]], retries: Retries) -> T:
    """Repeat a call until the server answers; raise the error of `Retries.wait_after`."""
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
