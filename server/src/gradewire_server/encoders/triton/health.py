"""The health of a model in Triton: evidence of failure, and repairs, which only the first of several replicas makes."""

import asyncio
import logging
import random
import time
from collections.abc import Callable
from typing import Final

from gradewire_server.encoders.prometheus import TritonTelemetry
from gradewire_server.triton import OVERLOAD, Counts, Fault, TritonClient, TritonError

_MISSING_PATIENCE_S: Final = 3.0
"""Whoever replaces a model by hand unloads it first and loads it soon: it is not for us to come in between."""
_ENOUGH: Final = 3
_SPAN_S: Final = 2.0
_GAP_S: Final = 10.0
"""So many failures, over so long, none later than this after the one before: loading some models takes minutes."""
_FRESH_S: Final = 3.0
_STUCK_PROBES: Final = 3
_FIRST_PAUSE_S: Final = 5.0
_LONGEST_PAUSE_S: Final = 60.0


class FailureEvidence:
    """Failures that cannot be the fault of what was asked: of known texts, or of a run that went well when sent again.

    One instance of several that is dead shows in some inferences only, and those that go well prove nothing.

    Args:
        clock: Monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._count = 0
        self._first_s = self._last_s = -_GAP_S

    def __bool__(self) -> bool:
        return self._count > 0 and self._clock() - self._last_s <= _GAP_S

    def add(self) -> None:
        """Notes one."""
        if not self:
            self._count, self._first_s = 0, self._clock()
        self._count += 1
        self._last_s = self._clock()

    def clear(self) -> None:
        """Forgets them: the model was loaded anew since."""
        self._count = 0

    @property
    def lasting(self) -> bool:
        """Whether they have gone on for long enough, until now."""
        fresh = self._clock() - self._last_s <= _FRESH_S
        return fresh and self._count >= _ENOUGH and self._last_s - self._first_s >= _SPAN_S


class ModelHealth:
    """One model that is followed.

    Attributes:
        task: Looks at it.
        doubted: Set where it should be looked at now.
        digest: Of the model that was last there.
        evidence: Of failures that cannot be the fault of what was asked.
        late: Looks in a row at its description that were not answered in time.
        not_before_s: No repair before that.
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

    def answered(self) -> None:
        """Triton has told of the model."""
        self._missing_since_s, self.late = None, 0

    def computed(self) -> None:
        """Every probe went well."""
        self._stuck, self._completed, self._pause_s = 0, None, _FIRST_PAUSE_S

    def note(self, kind: Fault) -> None:
        """A look has ended with an error."""
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
        """What it has answered since it was loaded; less than before means that somebody has loaded it anew.

        Args:
            counts: None where Triton does not say, as while it loads: what was known before stands.
        """
        if counts is None:
            return
        if self._counted is not None and not counts.may_follow(self._counted):
            self.loaded_anew()
        self._counted = counts

    def unanswered(self, completed: int | None) -> bool:
        """A probe was not computed in time.

        Args:
            completed: What Triton has computed so far, for whomever; None where it does not say.

        Returns:
            Whether anything was computed since the probe before, as far as is known: then it is busy, not stuck.
        """
        before, self._completed = self._completed, completed
        moved = completed is None or (before is not None and completed != before)
        self._stuck = 0 if moved else self._stuck + 1
        if self.evidence and not moved:
            self.evidence.add()  # it waits behind others that fail, a second each
        return moved

    @property
    def missing(self) -> bool:
        """Whether Triton has lacked it for long enough."""
        since_s = self._missing_since_s
        return since_s is not None and time.monotonic() > since_s + _MISSING_PATIENCE_S

    @property
    def stuck(self) -> bool:
        """Whether nothing was computed for anybody while probe after probe waited."""
        return self._stuck >= _STUCK_PROBES

    def mending(self) -> None:
        """A repair begins: the next one waits, ever longer while it does not help."""
        self.not_before_s = time.monotonic() + self._pause_s
        self._pause_s = min(2 * self._pause_s, _LONGEST_PAUSE_S)

    def loaded_anew(self) -> None:
        """It was loaded, by whomever: what was seen before says nothing any more."""
        self.evidence.clear()
        self._stuck, self._completed, self._counted, self._missing_since_s = 0, None, None, None


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
        ill = _needs_repair(health)
        if not ill and not health.missing:
            return
        outcome = "done"
        try:
            before = await self._state(name)
            if ill:
                health.counted(before[1])  # what was seen may be of a time before another replica has loaded it
                if not _needs_repair(health):
                    return
            await asyncio.sleep(random.uniform(0, _SPREAD_S))  # noqa: S311 - no secret
            now = await self._state(name)
            if not _still_needed(before, now, ill=ill, stuck=health.stuck):
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


def _needs_repair(health: ModelHealth) -> bool:
    return health.stuck or health.evidence.lasting


def _still_needed(
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
