"""The encoders of the server: loaded when first asked for, cached, and watched."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from gradewire_server.domain.ports import ModelStatus
from gradewire_server.domain.result import Failure
from gradewire_server.encoders.answers import EncoderAnswers
from gradewire_server.encoders.library import ModelLibrary
from gradewire_server.encoders.source import ModelSource
from gradewire_server.encoders.telemetry import EncoderTelemetry


@dataclass(frozen=True, slots=True)
class EncoderHealth:
    """What works.

    Attributes:
        models: Whether each model that was told to load or has been used is there, and can compute where it was told to
            load.
        troubles: Why one of them cannot, where that is known.
        degraded: Why one cannot that nobody told to load; and what works less well than the settings ask for.
    """

    models: Mapping[str, bool]
    troubles: Mapping[str, str]
    degraded: tuple[str, ...]


class Supervisor(Protocol):
    """Looks after models that run elsewhere."""

    async def close(self) -> None:
        """Looks no more."""


class EncoderService(EncoderAnswers):
    """Answers what needs vectors. Lives on the event loop it was made on.

    Args:
        source: Where models come from; closed with this.
        library: Those that are loaded; likewise.
        telemetry: Where answers are counted.
        preload: Models that the settings ask to load at start.
        supervisor: Looks after them, where they need that; closed first.
    """

    def __init__(
        self,
        source: ModelSource,
        library: ModelLibrary,
        telemetry: EncoderTelemetry,
        *,
        preload: Sequence[str],
        supervisor: Supervisor | None = None,
    ) -> None:
        super().__init__(library, telemetry)
        self._source = source
        self._preload = preload
        self._supervisor = supervisor
        self._told: dict[str, None] = {}

    async def load(self, name: str) -> ModelStatus | Failure:
        """Loads and warms up a model, "" being the default one; `health` says from then on whether it is well.

        A failure says how to get it, or that it is waited for (UNAVAILABLE).
        """
        self._told[name or self.library.default] = None
        loaded = await self.library.load(name)
        return loaded if isinstance(loaded, Failure) else loaded.status

    async def preload(self) -> None:
        """Loads what the settings ask to load at start; `health` shows what cannot be had."""
        for name in self._preload:
            await self.load(name)

    def within(self, namespace: str) -> EncoderAnswers:
        """The same encoders for a tenant's namespace: what others asked for is neither found nor waited for."""
        return EncoderAnswers(self.library, self._telemetry, namespace=namespace)

    def health(self) -> EncoderHealth:
        """Models as they are now.

        What callers happened to ask for does not make the server sick: it is no more than degraded.
        """
        library = self.library
        troubles = {name: self._source.trouble(name) for name in library.loaded}
        troubles |= {name: failure.message for name, failure in library.awaited.items()}
        troubles = {name: why for name, why in (library.unusable | troubles).items() if why}
        preloaded = [name or library.default for name in self._preload]
        told = dict.fromkeys([*preloaded, *(name for name in self._told if name in library.loaded or name in troubles)])
        models = {name: name in library.loaded and name not in troubles for name in told}
        models |= {name: True for name in library.loaded if name not in told}
        degraded = [why for name, why in troubles.items() if name not in told]
        degraded += [loaded.degraded for loaded in library.loaded.values() if loaded.degraded]
        return EncoderHealth(models, troubles, tuple(degraded))

    async def close(self) -> None:
        """Fails what is queued, finishes what is running."""
        if self._supervisor is not None:
            await self._supervisor.close()
        await self.library.close()
        await self._source.close()
