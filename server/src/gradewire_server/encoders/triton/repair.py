"""Has Triton load what it lacks, and load anew what fails; of several replicas before one Triton only the first."""

import asyncio
import logging
import random
import time
from typing import Final

from gradewire_server.encoders.triton.health import ModelHealth
from gradewire_server.encoders.triton.telemetry import TritonTelemetry
from gradewire_server.triton.client import TritonClient
from gradewire_server.triton.counts import Counts
from gradewire_server.triton.errors import TritonError

_log = logging.getLogger(__name__)

_SPREAD_S: Final = 1.0
"""Replicas that see the same illness at the same time wait for a random part of this, and look again."""
_CHANGING: Final = frozenset({"LOADING", "UNLOADING"})


class Repair:
    """Mends models, where that is allowed.

    Args:
        client: Where Triton is.
        telemetry: Where it is counted.
        allowed: Whether it may.
    """

    def __init__(self, client: TritonClient, telemetry: TritonTelemetry, *, allowed: bool) -> None:
        self._client = client
        self._telemetry = telemetry
        self._allowed = allowed

    async def consider(self, name: str, health: ModelHealth) -> None:
        """Mends a model if it is time to."""
        if not self._allowed or time.monotonic() < health.not_before_s:
            return
        ill = _ill(health)
        if not ill and not health.missing:
            return
        outcome = "done"
        try:
            before = await self._state(name)
            if ill:
                health.counted(before[1])  # what was seen may be of a time before another replica has loaded it
                if not _ill(health):
                    return
            await asyncio.sleep(random.uniform(0, _SPREAD_S))  # noqa: S311 - no secret
            now = await self._state(name)
            if not _still_so(before, now, ill=ill, stuck=health.stuck):
                return
            health.mending()
            if ill:
                await self._client.unload(name)
            await self._client.load(name)
            health.loaded_anew()
            _log.warning("model %s was loaded anew in Triton", name)
            health.doubted.set()
        except TritonError as refusal:
            health.mending()
            outcome = "failed"
            if "not allowed" in str(refusal):
                self._allowed, outcome = False, "not_allowed"
            _log.warning("model %s cannot be loaded anew in Triton: %s", name, refusal)
        self._telemetry.repairs.labels(name, outcome).inc()

    async def counts(self, name: str) -> Counts | None:
        """What a model has answered since it was loaded; None where Triton does not say."""
        try:
            return await self._client.counts(name)
        except TritonError as error:
            _log.debug("no statistics of model %s: %s", name, error)
            return None

    async def _state(self, name: str) -> tuple[frozenset[str], Counts | None]:
        # The state last: it shows when another replica has begun, and the less time passes until we begin the better.
        counts = await self.counts(name)
        return await self._client.states(name), counts


def _ill(health: ModelHealth) -> bool:
    return health.stuck or health.evidence.lasting


def _still_so(
    before: tuple[frozenset[str], Counts | None],
    now: tuple[frozenset[str], Counts | None],
    *,
    ill: bool,
    stuck: bool,
) -> bool:
    """Whether a model needs to be loaded anew, and nobody else is doing that or has done it meanwhile."""
    if (before[0] | now[0]) & _CHANGING or any(ill != ("READY" in states) for states, _ in (before, now)):
        return False
    if before[1] is None or now[1] is None:
        return True
    # What computes anything at all does not hang.
    return now[1].may_follow(before[1]) and not (stuck and now[1].succeeded > before[1].succeeded)
