"""Has Triton load what it lacks, and load anew what fails; of several fronts before one Triton the first alone does."""

import asyncio
import logging
import random
import time
from typing import Final

from gradewire_server.engine.triton_case import Case
from gradewire_server.engine.triton_errors import TritonError
from gradewire_server.engine.triton_link import TritonLink
from gradewire_server.engine.triton_telemetry import TritonTelemetry

_log = logging.getLogger(__name__)

_SPREAD_S: Final = 1.0
"""Fronts that see the same illness at the same time wait for a random part of this, and look again."""
_CHANGING: Final = frozenset({"LOADING", "UNLOADING"})


class Repair:
    """Mends models, where that is allowed.

    Args:
        link: Where Triton is.
        telemetry: Where it is counted.
        allowed: Whether it may.
    """

    def __init__(self, link: TritonLink, telemetry: TritonTelemetry, *, allowed: bool) -> None:
        self._link = link
        self._telemetry = telemetry
        self._allowed = allowed

    async def consider(self, name: str, case: Case) -> None:
        """Mends a model if it is time to."""
        if not self._allowed or time.monotonic() < case.not_before_s:
            return
        if not (case.missing or case.stuck or case.signs.last):
            return
        ill = not case.missing
        before = await self.completed(name)
        await asyncio.sleep(random.uniform(0, _SPREAD_S))  # noqa: S311 - no secret
        outcome = "done"
        try:
            states = await self._link.states(name)
            if states & _CHANGING or ill != ("READY" in states):
                return  # somebody is at it, or has been
            if ill and await self._others_loaded(name, case, before):
                return
            case.mending()
            if ill:
                await self._link.unload(name)
            await self._link.load(name)
            case.loaded_anew()
            _log.warning("model %s was loaded anew in Triton", name)
            case.doubted.set()
        except TritonError as refusal:
            case.mending()
            outcome = "failed"
            if "not allowed" in str(refusal):
                self._allowed, outcome = False, "not_allowed"
            _log.warning("model %s cannot be loaded anew in Triton: %s", name, refusal)
        self._telemetry.repairs.labels(name, outcome).inc()

    async def completed(self, name: str) -> int | None:
        """What a model has computed since it was loaded; None where Triton does not say."""
        try:
            return await self._link.completed(name)
        except TritonError as error:
            _log.debug("no statistics of model %s: %s", name, error)
            return None

    async def _others_loaded(self, name: str, case: Case, before: int | None) -> bool:
        """Whether it was loaded anew, which sets its count back, or computes what it did not before."""
        now = await self.completed(name)
        fresh = before is not None and now is not None and now < before
        if fresh or (case.stuck and now != before):
            case.loaded_anew()
            return True
        return False
