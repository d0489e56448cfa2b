"""Whether a judge's server can answer now. While it cannot, one probe at a time looks whether it can again."""

import asyncio
import contextvars
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Final

from gradewire_server.concurrency.backoff import Backoff
from gradewire_server.domain.result import Failure, Status
from gradewire_server.judges.remote.errors import RemoteError

_log = logging.getLogger(__name__)

_PROBES: Final = Backoff(base_s=1.0, cap_s=15.0)
_SHORTEST_WAIT_S: Final = 0.25
_PROBE_TIMEOUT_S: Final = 10.0


class ServerAvailability:
    """Remembers why a server cannot answer, and probes it until it can again.

    Args:
        name: Of the judge, for the log.
        probe: Asks the server for as little as possible; raises RemoteError while it cannot answer.
        backoff: Waits between probes.
        probe_timeout_s: Longest wait for one; a server that is silent is still away.
    """

    def __init__(
        self,
        name: str,
        probe: Callable[[], Awaitable[None]],
        *,
        backoff: Backoff = _PROBES,
        probe_timeout_s: float = _PROBE_TIMEOUT_S,
    ) -> None:
        self._name = name
        self._probe = probe
        self._backoff = backoff
        self._probe_timeout_s = probe_timeout_s
        self._failure: Failure | None = None
        self._succeeded_s = float("-inf")
        self._next_probe_s = 0.0
        self._probing: asyncio.Task[None] | None = None

    @property
    def trouble(self) -> str:
        """Why the server cannot answer now; empty when it can."""
        return "" if self._failure is None else self._failure.message

    def refusal(self) -> Failure | None:
        """What callers are told at once while the server cannot answer; says how long to wait where that helps."""
        if self._failure is None or self._failure.status is not Status.UNAVAILABLE:
            return self._failure
        left_s = max(_SHORTEST_WAIT_S, self._next_probe_s - time.monotonic())
        return Failure(self._failure.status, self._failure.message, round(left_s, 3))

    def succeeded(self) -> None:
        """Notes that a request was answered."""
        self._succeeded_s = time.monotonic()
        if self._failure is not None:
            _log.info("judge %s: its server answers again", self._name)
        self._failure = None

    def failed(self, error: RemoteError, *, sent_s: float) -> None:
        """Notes that a request failed after all its attempts.

        Args:
            error: Of a kind in `AWAY`.
            sent_s: When it was first sent: where another request was answered since then, this one alone is to blame.
        """
        if self._succeeded_s > sent_s or self._failure is not None:
            return
        _log.warning("judge %s: %s (%s)", self._name, error.failure.message, error.kind.value)
        self._failure = error.failure
        if self._probing is None or self._probing.done():
            # A context of its own: what it logs later is not about this request.
            self._probing = asyncio.create_task(self._probe_until_it_answers(), context=contextvars.Context())

    async def close(self) -> None:
        """Ends the probes."""
        if self._probing is not None:
            self._probing.cancel()
            await asyncio.gather(self._probing, return_exceptions=True)

    async def _probe_until_it_answers(self) -> None:
        attempt = 0
        while self._failure is not None:
            attempt += 1
            wait_s = max(_SHORTEST_WAIT_S, self._backoff.wait_s(attempt))
            self._next_probe_s = time.monotonic() + wait_s
            await asyncio.sleep(wait_s)
            try:
                async with asyncio.timeout(self._probe_timeout_s):
                    await self._probe()
            except RemoteError as error:
                self._failure = error.failure
            except TimeoutError:
                continue
            except Exception as error:  # noqa: BLE001 - probes that ended would keep the judge down for ever
                _log.error("judge %s: a probe of its server raised %s", self._name, type(error).__qualname__)
            else:
                self.succeeded()
