"""When a call that failed is made again: after which failures, after how long, how often.

gRPC itself repeats a call that nothing was answered of, by the service config made here. A stream or a preparation that
breaks in the middle must not be repeated but resumed, with what is unfinished: its call asks a `Retries` each time.
Both obey the server's `grpc-retry-pushback-ms`, and neither goes on beyond its deadline.
"""

import asyncio
import random
from collections.abc import Callable, Sequence

from gradewire.errors import ServerFault, TransportError

_ATTEMPTS = 5
_GROWTH = 2
# gRPC varies its waits by as much, so that the clients of a server that restarts do not come back all at once.
_JITTER = 0.2
_FIRST_WAIT_S = 0.1
_LONGEST_WAIT_S = 2.0
# What was interrupted has waited inside gRPC before.
_FIRST_WAIT_TO_RESUME_S = 0.2


def grpc_method_config(services: Sequence[str]) -> dict[str, object]:
    """The part of gRPC's service config that says how calls to some services are repeated."""
    return {
        "name": [{"service": service} for service in services],
        "retryPolicy": {
            "maxAttempts": _ATTEMPTS,
            "initialBackoff": f"{_FIRST_WAIT_S:g}s",
            "maxBackoff": f"{_LONGEST_WAIT_S:g}s",
            "backoffMultiplier": _GROWTH,
            "retryableStatusCodes": ["UNAVAILABLE", "RESOURCE_EXHAUSTED", "CANCELLED"],
        },
    }


class Retries:
    """Decides for one stream or one request of a preparation whether and when it is resumed.

    Args:
        left_s: Seconds until the deadline, which no wait outlasts; None: the caller watches its time itself.
    """

    def __init__(self, left_s: Callable[[], float] | None = None) -> None:
        self._left_s = left_s
        self._failures = 0

    def progressed(self) -> None:
        """Something was answered since the last failure: the count starts again."""
        self._failures = 0

    async def wait_after(self, error: TransportError) -> None:
        """Waits until the next attempt.

        Raises:
            TransportError: The error itself: there were enough attempts, or another one would not help.
        """
        self._failures += 1
        if self._failures == _ATTEMPTS or isinstance(error, ServerFault):
            raise error
        wait_s = error.retry_after_s or self._usual_wait_s()
        await asyncio.sleep(wait_s if self._left_s is None else min(wait_s, self._left_s()))

    def _usual_wait_s(self) -> float:
        wait_s = min(_FIRST_WAIT_TO_RESUME_S * float(_GROWTH) ** (self._failures - 1), _LONGEST_WAIT_S)
        return wait_s * random.uniform(1 - _JITTER, 1 + _JITTER)  # noqa: S311 - spreads load, hides nothing
