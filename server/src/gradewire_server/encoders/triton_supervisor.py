"""A supervisor that detects replaced models in Triton, and loads faulty models again."""

import asyncio
import logging
import random
import time
from collections.abc import Callable
from typing import Final, TypeAlias

from gradewire_server.domain.items import Failure
from gradewire_server.encoders.library import ModelLibrary
from gradewire_server.encoders.prometheus import TritonTelemetry
from gradewire_server.encoders.triton_model import TritonModel
from gradewire_server.encoders.triton_source import TritonSource
from gradewire_server.settings.engine import TritonConfig
from gradewire_server.triton import OVERLOAD, Counts, Fault, TritonError

_log = logging.getLogger(__name__)

_MISSING_PATIENCE_S: Final = 3.0
"""Seconds to wait before a missing model is repaired. A manual reload, for example, needs no repair."""
_LASTING_FAILURES: Final = 3
_LASTING_S: Final = 2.0
_LONGEST_GAP_S: Final = 10.0
"""The maximum number of seconds between two failures of a series. `_LASTING_FAILURES` failures over `_LASTING_S`
seconds require a repair.
"""
_FRESH_S: Final = 3.0
_STUCK_PROBES: Final = 3
_FIRST_PAUSE_S: Final = 5.0
_LONGEST_PAUSE_S: Final = 60.0
_LATE_CHECKS: Final = 2
"""The number of consecutive late checks after which a model counts as hung. One late check may mean a busy machine."""
_PAUSE_S: Final = 0.25
_SPREAD_S: Final = 1.0
"""The maximum random delay in seconds before a repair, so that only one of several replicas repairs a model."""
_CHANGING: Final = frozenset({"LOADING", "UNLOADING"})

_State: TypeAlias = tuple[frozenset[str], Counts | None]
"""A model's states in Triton, and counts of answers since the model was loaded."""


class FailureEvidence:
    """Failures that no request can have caused: failed probes, and failed runs that succeeded on a second try.

    If one of several instances is dead, only some inferences fail, so a successful inference proves nothing.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._count = 0
        self._first_s = self._last_s = -_LONGEST_GAP_S

    def __bool__(self) -> bool:
        return self._count > 0 and self._clock() - self._last_s <= _LONGEST_GAP_S

    def add(self) -> None:
        """Record one failure."""
        if not self:
            self._count, self._first_s = 0, self._clock()
        self._count += 1
        self._last_s = self._clock()

    def clear(self) -> None:
        """Forget all failures."""
        self._count = 0

    @property
    def lasting(self) -> bool:
        """True if recent failures require a repair."""
        fresh = self._clock() - self._last_s <= _FRESH_S
        return fresh and self._count >= _LASTING_FAILURES and self._last_s - self._first_s >= _LASTING_S


class ModelHealth:
    """One supervised model's health.

    Attributes:
        late: Number of consecutive checks in which Triton did not describe the model in time.
    """

    def __init__(self) -> None:
        self.task: asyncio.Task[None] | None = None
        self.doubted = asyncio.Event()
        self.digest = ""
        self.evidence = FailureEvidence()
        self.late = 0
        self.not_before_s = 0.0
        self._missing_since_s: float | None = None
        self._pause_s = _FIRST_PAUSE_S
        self._stuck = 0
        self._completed: int | None = None
        self._counted: Counts | None = None

    def described(self) -> None:
        """Record that Triton has described the model."""
        self._missing_since_s, self.late = None, 0

    def computed(self) -> None:
        """Record that every probe succeeded."""
        self._stuck, self._completed, self._pause_s = 0, None, _FIRST_PAUSE_S

    def note(self, kind: Fault) -> None:
        """Record a check that ended with an error."""
        self.late += kind is Fault.LATE
        if kind is Fault.FAILED:
            self.evidence.add()
        if kind is Fault.NOT_READY:
            self._missing_since_s = self._missing_since_s or time.monotonic()
            self.evidence.clear()
        else:
            self._missing_since_s = None
        if kind is not Fault.LATE and kind not in OVERLOAD:
            self._stuck = 0

    def counted(self, counts: Counts | None) -> None:
        """Record counts of answers since the model was loaded; ignore None.

        Lower counts than before mean that the model was loaded again.
        """
        if counts is None:
            return
        if self._counted is not None and not counts.may_follow(self._counted):
            self.reloaded()
        self._counted = counts

    def probe_timed_out(self, completed: int | None) -> bool:
        """Record that a probe timed out. `completed` is the number of completed inferences, or None if unknown.

        Returns:
            True if the model may be busy with other requests rather than stuck.
        """
        before, self._completed = self._completed, completed
        moved = completed is None or (before is not None and completed != before)
        self._stuck = 0 if moved else self._stuck + 1
        if self.evidence and not moved:
            self.evidence.add()  # the probe waited for failing inferences
        return moved

    @property
    def missing(self) -> bool:
        """True if the model has been missing for longer than `_MISSING_PATIENCE_S`."""
        since_s = self._missing_since_s
        return since_s is not None and time.monotonic() > since_s + _MISSING_PATIENCE_S

    @property
    def stuck(self) -> bool:
        """True if several consecutive probes waited while the model computed nothing."""
        return self._stuck >= _STUCK_PROBES

    @property
    def ill(self) -> bool:
        """True if the model needs a repair."""
        return self.stuck or self.evidence.lasting

    def mending(self) -> None:
        """Record that a repair starts. The pause before the next repair doubles until the model recovers."""
        self.not_before_s = time.monotonic() + self._pause_s
        self._pause_s = min(2 * self._pause_s, _LONGEST_PAUSE_S)

    def reloaded(self) -> None:
        """Record that the model was loaded again, and forget all failures."""
        self.evidence.clear()
        self._stuck, self._completed, self._counted, self._missing_since_s = 0, None, None, None


def _still_needed(before: _State, now: _State, *, ill: bool, stuck: bool) -> bool:
    """Return True if a model still needs a reload and no other replica is reloading or has reloaded it."""
    if (before[0] | now[0]) & _CHANGING or any(ill != ("READY" in states) for states, _ in (before, now)):
        return False
    if before[1] is None or now[1] is None:
        return True
    # A model that computes anything is not stuck.
    return now[1].may_follow(before[1]) and not (stuck and now[1].succeeded > before[1].succeeded)


class TritonSupervisor:
    """A supervisor that checks each watched model regularly, and immediately if something seems wrong."""

    def __init__(
        self, library: ModelLibrary, source: TritonSource, config: TritonConfig, telemetry: TritonTelemetry
    ) -> None:
        self._library = library
        self._source = source
        self._client = source.client
        self._config = config
        self._telemetry = telemetry
        self._followed: dict[str, ModelHealth] = {}
        self._may_repair = config.repair

    def watch(self, name: str) -> None:
        """Supervise a model from now on."""
        if name not in self._followed:
            followed = self._followed[name] = ModelHealth()
            followed.task = asyncio.get_running_loop().create_task(self._keep(name, followed))

    def wake(self, name: str) -> None:
        """Check a model now."""
        if name in self._followed:
            self._followed[name].doubted.set()

    def flawed(self, name: str) -> None:
        """Record a failure that no text can have caused, and check the model now."""
        if name in self._followed:
            self._followed[name].evidence.add()
            self.wake(name)

    async def close(self) -> None:
        """Stop all checks."""
        tasks = [followed.task for followed in self._followed.values() if followed.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _keep(self, name: str, followed: ModelHealth) -> None:
        while True:
            try:
                async with asyncio.timeout(self._config.poll_s):
                    await followed.doubted.wait()
            except TimeoutError:
                pass
            doubted = followed.doubted.is_set()
            followed.doubted.clear()
            try:
                await self._look(name, followed, doubted=doubted)
            except Exception:  # noqa: BLE001 - log the error; the next check may succeed
                _log.exception("cannot check model %s in Triton", name)
            await asyncio.sleep(min(self._config.poll_s, _PAUSE_S))

    async def _look(self, name: str, followed: ModelHealth, *, doubted: bool) -> None:
        model = self._source.opened.get(name) if name in self._library.loaded else None
        try:
            if model is None:
                await self._look_at_awaited(name, followed)
            else:
                await self._look_at_loaded(name, followed, model, doubted=doubted)
        except TritonError as error:
            followed.note(error.kind)
            if model is None:
                self._library.still_awaited(name, error.meaning.failure)
            elif error.kind is Fault.REPLACED:
                await self._reload(name, followed)
            elif error.meaning.breaks and (error.kind is not Fault.LATE or followed.late >= _LATE_CHECKS):
                model.lost(error)
        await self.repair(name, followed)

    async def _look_at_awaited(self, name: str, followed: ModelHealth) -> None:
        await self._client.served(name)
        followed.described()
        if name in self._library.loaded:
            return  # a load that was in progress has ended since this check began
        await self._reload(name, followed)
        error = self._source.opening_errors.get(name)
        if error is not None:
            followed.note(error.kind)
            await self._progress(name, followed, error)

    async def _look_at_loaded(self, name: str, followed: ModelHealth, model: TritonModel, *, doubted: bool) -> None:
        served = await self._client.served(name)
        followed.described()
        followed.digest = followed.digest or model.description.digest
        digest, fingerprint = served.facts.get("digest"), served.facts.get("fingerprint")
        if (digest, fingerprint) != (model.description.digest, str(model.description.fingerprint)):
            _log.info("model %s in Triton has the digest %s now", name, digest)
            await self._reload(name, followed)
            return
        if not doubted and model.breaker.closed and not followed.evidence:
            return
        if followed.evidence:
            followed.counted(await self._counts(name))
        try:
            well = await model.probe()
        except TritonError as error:
            followed.note(error.kind)
            moves = await self._progress(name, followed, error)
            if error.kind in OVERLOAD:
                # If the queue is full because Triton is busy with other requests, the model is not at fault.
                model.breaker.succeeded() if moves else model.lost(error)
            elif error.kind is Fault.REPLACED:
                await self._reload(name, followed)
            return
        if well:
            followed.computed()

    async def _progress(self, name: str, followed: ModelHealth, error: TritonError) -> bool:
        """Return True if a probe timed out only because Triton computes other requests."""
        if error.kind is not Fault.LATE and error.kind not in OVERLOAD:
            return False
        counts = await self._counts(name)
        return followed.probe_timed_out(None if counts is None else counts.succeeded)

    async def _reload(self, name: str, followed: ModelHealth) -> None:
        loaded = await self._library.reload(name)
        if isinstance(loaded, Failure):
            return
        if followed.digest not in {"", loaded.status.digest}:
            self._telemetry.switches.labels(name).inc()
            _log.warning("model %s was replaced: digest %s instead of %s", name, loaded.status.digest, followed.digest)
        followed.digest = loaded.status.digest

    async def repair(self, name: str, health: ModelHealth) -> None:
        """Load a model again if a repair is due and allowed."""
        if not self._may_repair or time.monotonic() < health.not_before_s:
            return
        ill = health.ill
        if not ill and not health.missing:
            return
        outcome = "done"
        try:
            before = await self._state(name)
            if ill:
                health.counted(before[1])  # another replica may have loaded the model since the last failure
                if not health.ill:
                    return
            await asyncio.sleep(random.uniform(0, _SPREAD_S))  # noqa: S311 - no secret
            now = await self._state(name)
            if not _still_needed(before, now, ill=ill, stuck=health.stuck):
                return
            health.mending()
            if ill:
                await self._client.unload(name)
            await self._client.load(name)
            health.reloaded()
            _log.warning("model %s was loaded again in Triton", name)
            health.doubted.set()
        except TritonError as refusal:
            health.mending()
            outcome = "failed"
            if "not allowed" in str(refusal):
                self._may_repair, outcome = False, "not_allowed"
            _log.warning("cannot load model %s again in Triton: %s", name, refusal)
        self._telemetry.repairs.labels(name, outcome).inc()

    async def _counts(self, name: str) -> Counts | None:
        try:
            return await self._client.counts(name)
        except TritonError as error:
            _log.debug("no statistics of model %s: %s", name, error)
            return None

    async def _state(self, name: str) -> _State:
        # Read the states last, because recent states show whether another replica has started a repair.
        counts = await self._counts(name)
        return await self._client.states(name), counts
