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
from datetime import datetime, timedelta
from typing import Final, TypeVar

from gradewire.errors import Overloaded, ServerUnreachable, TransportError
from gradewire_proto.wire_rules import Backoff

SPREAD: Final = (0.8, 1.2)
"""Factors of waits: the clients of a server that restarts do not come back all at once."""
_BACKOFF = Backoff(0.1, 2.0, SPREAD)
# With less time than this left, another attempt answers nothing.
_TOO_LATE_S = 0.05
# A restart takes a few seconds; what takes longer, people should know of. Many calls fail at a time: one says it.
_LOG_AFTER_S = 3.0
_LOG_AGAIN_AFTER_S = 10.0

_log = logging.getLogger("gradewire.retries")

T = TypeVar("T")

_logged_at = -_LOG_AGAIN_AFTER_S


def wait_after_s(error: TransportError, backoff: Backoff, failures: int, most_s: float = math.inf) -> float:
    """Return the seconds until the next try: what the server asks for and up to a fifth more, or the back-off's."""
    if error.retry_after_s:
        return error.retry_after_s * random.uniform(1, SPREAD[1])  # noqa: S311 - spreads load, hides nothing
    return backoff.wait_s(failures, most_s)


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
        self._failures = 0
        self._failing_since = 0.0
        self._last: TransportError | None = None
        self._reported = False

    def progressed(self) -> None:
        """Something was answered since the last failure: waits are short again."""
        if self._reported:
            _log.warning("the server answers again, after %.1f s", time.monotonic() - self._failing_since)
        self._failures = 0
        self._last = None
        self._reported = False

    async def wait_after(self, error: TransportError) -> None:
        """Wait until the next attempt.

        Raises:
            TransportError: The error, with what was tried: the deadline is too near, or trying again cannot help.
        """
        if not (isinstance(error, self._tried_again_after) and error.may_pass):
            raise self.with_attempts(error)
        if not self._failures:
            self._failing_since = time.monotonic()
        self._failures += 1
        self._last = error
        left_s = self._left_s()
        # The last seconds have several attempts: a server may come back in them.
        wait_s = wait_after_s(error, _BACKOFF, self._failures, max(left_s / 2, _BACKOFF.first_s))
        if wait_s + _TOO_LATE_S > left_s:
            raise self.with_attempts(error)
        self._report(error, left_s)
        await sleep(wait_s)

    def with_attempts(self, error: TransportError) -> TransportError:
        """Return the error with the attempts before it in its message; itself where there were none."""
        if self._last is None:
            return error
        attempts = self._failures + (error is not self._last)
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
