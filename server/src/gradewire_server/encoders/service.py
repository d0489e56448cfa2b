"""The encoders of the server: loaded when first asked for, cached, and watched."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from numpy import int32
from numpy.typing import NDArray
from typing_extensions import override

from gradewire_server.domain.needs import Tier
from gradewire_server.domain.ports import Embeddings, EmbedReply, ModelStatus, TokensReply
from gradewire_server.domain.result import Failure, Status
from gradewire_server.encoders.library import ModelLibrary
from gradewire_server.encoders.replies import failed_sentences, failed_tokens, sentence_reply, tokens_reply
from gradewire_server.encoders.source import ModelSource
from gradewire_server.encoders.telemetry import EncoderTelemetry
from gradewire_server.storage.vector_kind import SENTENCE, WORDS


@dataclass(frozen=True, slots=True)
class EncoderHealth:
    """What works.

    Attributes:
        models: Whether each model that was told to load or has been used is there, and can compute where it was told to
            load.
        troubles: Why one of them cannot, where that is known.
        degraded: Why one cannot that nobody told to load.
    """

    models: Mapping[str, bool]
    troubles: Mapping[str, str]
    degraded: tuple[str, ...]


class Supervisor(Protocol):
    """Looks after models that run elsewhere."""

    async def close(self) -> None:
        """Looks no more."""


class EncoderService(Embeddings):
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
        self.library = library
        self._source = source
        self._telemetry = telemetry
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

    @override
    async def embed(
        self, model: str, texts: Sequence[str], tiers: Sequence[Tier], *, deadline_s: float | None = None
    ) -> EmbedReply:
        loaded = self.library.find(model) or await self.library.load(model)
        if isinstance(loaded, Failure):
            self._telemetry.failures.labels(loaded.status.name.lower()).inc(len(texts))
            return failed_sentences(loaded, len(texts))
        call = await loaded.encoder.fetch(texts, tiers, kind=SENTENCE, deadline_s=deadline_s)
        reply = sentence_reply(call, loaded.encoder.spaces.dims)
        self._telemetry.answered(call.sources, reply.failures.items())
        return reply

    @override
    async def embed_tokens(
        self,
        model: str,
        texts: Sequence[str],
        tiers: Sequence[Tier],
        *,
        layer: int = 0,
        deadline_s: float | None = None,
    ) -> TokensReply:
        loaded = self.library.find(model) or await self.library.load(model)
        if isinstance(loaded, Failure):
            self._telemetry.failures.labels(loaded.status.name.lower()).inc(len(texts))
            return failed_tokens(loaded, len(texts))
        layers = loaded.encoder.layers
        if layer != WORDS and layer not in layers:
            failure = Failure(
                Status.INVALID_PARAMETER,
                f"layer: {loaded.status.name} gives token vectors of {', '.join(map(str, layers))}, not of {layer}",
            )
            return failed_tokens(failure, len(texts))
        call = await loaded.encoder.fetch(texts, tiers, kind=layer, deadline_s=deadline_s)
        reply = await tokens_reply(call, loaded.encoder.spaces.dims)
        failed = [(position, item) for position, item in enumerate(reply.items) if isinstance(item, Failure)]
        self._telemetry.answered(call.sources, failed)
        return reply

    @override
    async def token_ids(self, model: str, texts: Sequence[str]) -> Sequence[NDArray[int32]] | Failure:
        loaded = self.library.find(model) or await self.library.load(model)
        return loaded if isinstance(loaded, Failure) else await loaded.encoder.token_ids(texts)

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
        return EncoderHealth(models, troubles, tuple(why for name, why in troubles.items() if name not in told))

    async def close(self) -> None:
        """Fails what is queued, finishes what is running."""
        if self._supervisor is not None:
            await self._supervisor.close()
        await self.library.close()
        await self._source.close()
