"""Keeps an eye on every model that is used in Triton: notices others in their place, mends what fails."""

import asyncio
import logging
from typing import Final, Protocol

from gradewire_server.domain.items import Failure
from gradewire_server.encoders.prometheus import TritonTelemetry
from gradewire_server.encoders.service import ModelLibrary
from gradewire_server.encoders.triton.health import ModelHealth, Repair
from gradewire_server.encoders.triton.model import TritonModel
from gradewire_server.settings.engine import TritonConfig
from gradewire_server.triton import OVERLOAD, Fault, TritonClient, TritonError

_log = logging.getLogger(__name__)

_LATE_LOOKS: Final = 2
"""Looks in a row that were not answered in time before it counts as hanging: once may be a busy machine."""
_PAUSE_S: Final = 0.25
"""Between looks, however often something seems wrong."""


class OpenedModels(Protocol):
    """What the supervisor asks of the source of models."""

    client: TritonClient

    def opened(self, name: str) -> TritonModel | None:
        """The model that a name was last opened as."""

    def opening_error(self, name: str) -> TritonError | None:
        """What Triton said when the name was last opened in vain."""


class TritonSupervisor:
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
        self._client = source.client
        self._config = config
        self._telemetry = telemetry
        self._followed: dict[str, ModelHealth] = {}
        self._repair = Repair(source.client, telemetry, allowed=config.repair)

    def follow(self, name: str) -> None:
        """Keeps an eye on a model from now on."""
        if name not in self._followed:
            followed = self._followed[name] = ModelHealth()
            followed.task = asyncio.get_running_loop().create_task(self._keep(name, followed))

    def wake(self, name: str) -> None:
        """Looks at a model now."""
        if name in self._followed:
            self._followed[name].doubted.set()

    def flawed(self, name: str) -> None:
        """Notes that a run failed and went well when it was sent again; looks at the model now."""
        if name in self._followed:
            self._followed[name].evidence.add()
            self.wake(name)

    async def close(self) -> None:
        """Looks no more."""
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
            except Exception:  # noqa: BLE001 - whatever it was, it is logged and the next look may go well
                _log.exception("looking at model %s in Triton failed", name)
            await asyncio.sleep(min(self._config.poll_s, _PAUSE_S))

    async def _look(self, name: str, followed: ModelHealth, *, doubted: bool) -> None:
        model = self._source.opened(name) if name in self._library.loaded else None
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
            elif error.meaning.breaks and (error.kind is not Fault.LATE or followed.late >= _LATE_LOOKS):
                model.lost(error)
        await self._repair.consider(name, followed)

    async def _look_at_awaited(self, name: str, followed: ModelHealth) -> None:
        await self._client.served(name)
        followed.answered()
        await self._reload(name, followed)
        error = self._source.opening_error(name)
        if error is not None:
            followed.note(error.kind)
            await self._progress(name, followed, error)

    async def _look_at_loaded(self, name: str, followed: ModelHealth, model: TritonModel, *, doubted: bool) -> None:
        served = await self._client.served(name)
        followed.answered()
        followed.digest = followed.digest or model.description.digest
        if not _same(model, served.facts.get("digest"), served.facts.get("fingerprint")):
            _log.info("model %s in Triton has the digest %s now", name, served.facts.get("digest"))
            await self._reload(name, followed)
            return
        if not doubted and model.breaker.closed and not followed.evidence:
            return
        if followed.evidence:
            followed.counted(await self._repair.counts(name))
        try:
            well = await model.probe()
        except TritonError as error:
            followed.note(error.kind)
            moves = await self._progress(name, followed, error)
            if error.kind in OVERLOAD:
                # A queue that is full because somebody is served is none of the model's faults.
                model.breaker.succeeded() if moves else model.lost(error)
            elif error.kind is Fault.REPLACED:
                await self._reload(name, followed)
            return
        if well:
            followed.computed()

    async def _progress(self, name: str, followed: ModelHealth, error: TritonError) -> bool:
        """Whether Triton computes something for somebody, where a probe of ours was not computed in time."""
        if error.kind is not Fault.LATE and error.kind not in OVERLOAD:
            return False
        counts = await self._repair.counts(name)
        return followed.unanswered(None if counts is None else counts.succeeded)

    async def _reload(self, name: str, followed: ModelHealth) -> None:
        loaded = await self._library.reload(name)
        if isinstance(loaded, Failure):
            return
        if followed.digest not in {"", loaded.status.digest}:
            self._telemetry.switches.labels(name).inc()
            _log.warning("model %s was replaced: digest %s, before %s", name, loaded.status.digest, followed.digest)
        followed.digest = loaded.status.digest


def _same(model: TritonModel, digest: str | None, fingerprint: str | None) -> bool:
    description = model.description
    return (digest, fingerprint) == (description.digest, str(description.fingerprint))
