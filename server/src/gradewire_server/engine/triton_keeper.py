"""Keeps an eye on every model that is used in Triton: notices others in their place, mends what fails."""

import asyncio
import logging
import time
from typing import Final, Protocol

from gradewire_server.domain.result import Failure
from gradewire_server.engine.config import TritonConfig
from gradewire_server.engine.model_shelf import ModelLibrary
from gradewire_server.engine.triton_errors import Kind, TritonError
from gradewire_server.engine.triton_link import TritonLink
from gradewire_server.engine.triton_model import TritonModel
from gradewire_server.engine.triton_telemetry import TritonTelemetry

_log = logging.getLogger(__name__)

_MISSING_PATIENCE_S: Final = 3.0
"""Whoever replaces a model by hand unloads it first and loads it soon: it is not for us to come in between."""
_LATE_LOOKS: Final = 2
"""Looks in a row that were not answered in time before it counts as hanging: once may be a busy machine."""
_FAILED_PROBES: Final = 2
"""Probes in a row that must fail before a model is unloaded: loading some of them takes minutes."""
_FIRST_PAUSE_S: Final = 5.0
_LONGEST_PAUSE_S: Final = 60.0


class OpenedModels(Protocol):
    """What the keeper asks of the source of models."""

    link: TritonLink

    def opened(self, name: str) -> TritonModel | None:
        """The model that a name was last opened as."""

    def opening_error(self, name: str) -> TritonError | None:
        """What Triton said when the name was last opened in vain."""


class TritonKeeper:
    """Looks at each followed model once in a while, and at once where something seems wrong.

    Args:
        library: Where models are loaded and replaced.
        source: Where they come from.
        config: How often to look, and whether to mend.
        telemetry: Where it is counted.
    """

    def __init__(
        self,
        library: ModelLibrary,
        source: OpenedModels,
        config: TritonConfig,
        telemetry: TritonTelemetry,
    ) -> None:
        self._library = library
        self._source = source
        self._link = source.link
        self._config = config
        self._telemetry = telemetry
        self._followed: dict[str, _Followed] = {}
        self._may_mend = config.repair

    def follow(self, name: str) -> None:
        """Keeps an eye on a model from now on."""
        if name not in self._followed:
            followed = self._followed[name] = _Followed()
            followed.task = asyncio.get_running_loop().create_task(self._keep(name, followed))

    def wake(self, name: str) -> None:
        """Looks at a model now."""
        if name in self._followed:
            self._followed[name].doubted.set()

    async def close(self) -> None:
        """Looks no more."""
        tasks = [followed.task for followed in self._followed.values() if followed.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _keep(self, name: str, followed: "_Followed") -> None:
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
            except Exception:  # noqa: BLE001 - whatever it was, it is logged and the next look may go well
                _log.exception("looking at model %s in Triton failed", name)

    async def _look(self, name: str, followed: "_Followed", *, doubted: bool) -> None:
        model = self._source.opened(name) if name in self._library.loaded else None
        try:
            served = await self._link.served(name)
            followed.answered()
            if model is None:
                await self._reload(name, followed)
                error = self._source.opening_error(name)
                if error is not None:
                    followed.note(error.kind)
                    await self._mend(name, followed, error)
                return
            followed.digest = followed.digest or model.description.digest
            if not _same(model, served.facts.get("digest"), served.facts.get("fingerprint")):
                _log.info("model %s in Triton has the digest %s now", name, served.facts.get("digest"))
                await self._reload(name, followed)
            elif doubted or not model.breaker.closed:
                await model.probe()
                followed.computed()
        except TritonError as error:
            followed.note(error.kind)
            if model is None:
                self._library.still_awaited(name, error.meaning.failure)
            elif error.kind is Kind.REPLACED:
                await self._reload(name, followed)
            elif error.meaning.breaks and (error.kind is not Kind.LATE or followed.late >= _LATE_LOOKS):
                model.lost(error)
            await self._mend(name, followed, error)

    async def _reload(self, name: str, followed: "_Followed") -> None:
        loaded = await self._library.reload(name)
        if isinstance(loaded, Failure):
            return
        if followed.digest not in {"", loaded.status.digest}:
            self._telemetry.switches.labels(name).inc()
            _log.warning("model %s was replaced: digest %s, before %s", name, loaded.status.digest, followed.digest)
        followed.digest = loaded.status.digest

    async def _mend(self, name: str, followed: "_Followed", error: TritonError) -> None:
        """Has Triton load what it lacks, and load anew what fails, now and then."""
        now_s = time.monotonic()
        if not self._may_mend or now_s < followed.not_before_s:
            return
        missing = followed.missing_since_s is not None and now_s > followed.missing_since_s + _MISSING_PATIENCE_S
        if not missing and followed.failed < _FAILED_PROBES:
            return
        followed.not_before_s = now_s + followed.pause_s
        followed.pause_s = min(2 * followed.pause_s, _LONGEST_PAUSE_S)
        outcome = "done"
        try:
            if error.kind is Kind.FAILED:
                followed.failed = 0
                await self._link.unload(name)
            await self._link.load(name)
            _log.warning("model %s was loaded anew in Triton", name)
            followed.doubted.set()
        except TritonError as refusal:
            outcome = "failed"
            if "not allowed" in str(refusal):
                self._may_mend, outcome = False, "not_allowed"
            _log.warning("model %s cannot be loaded anew in Triton: %s", name, refusal)
        self._telemetry.repairs.labels(name, outcome).inc()


class _Followed:
    """What is known of one model."""

    def __init__(self) -> None:
        self.task: asyncio.Task[None] | None = None
        self.doubted = asyncio.Event()
        self.digest = ""
        self.missing_since_s: float | None = None
        self.not_before_s = 0.0
        self.pause_s = _FIRST_PAUSE_S
        self.late = 0
        self.failed = 0

    def answered(self) -> None:
        """Triton has told of the model."""
        self.missing_since_s, self.late = None, 0

    def computed(self) -> None:
        """It has computed something."""
        self.failed, self.pause_s = 0, _FIRST_PAUSE_S

    def note(self, kind: Kind) -> None:
        """A look has ended with an error."""
        self.late += kind is Kind.LATE
        self.failed = self.failed + 1 if kind is Kind.FAILED else 0
        if kind is Kind.NOT_READY:
            self.missing_since_s = self.missing_since_s or time.monotonic()
        else:
            self.missing_since_s = None


def _same(model: TritonModel, digest: str | None, fingerprint: str | None) -> bool:
    description = model.description
    return (digest, fingerprint) == (description.digest, str(description.fingerprint))
