"""The engine whoever runs its encoders and judges: cache, single flight, prepared answers, models."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gradewire_server.domain.judge import Choice, Choose, Generate, Generated
from gradewire_server.domain.needs import PreparedAnswers, ReferenceEntries, Synonyms, Tier
from gradewire_server.domain.ports import EmbedReply, Engine, JudgeReply, ModelStatus, TokensReply
from gradewire_server.domain.result import Failure, Status
from gradewire_server.encoders.cache import VectorCache
from gradewire_server.encoders.encoder import Encoder
from gradewire_server.encoders.library import ModelLibrary
from gradewire_server.encoders.replies import failed_sentences, failed_tokens, sentence_reply, tokens_reply
from gradewire_server.encoders.source import ModelSource
from gradewire_server.judges.service import JudgeHealth, JudgeService
from gradewire_server.judges.verdicts.cache import VerdictCache
from gradewire_server.lexicon.thesaurus import Thesaurus
from gradewire_server.settings.groups import EngineConfig
from gradewire_server.storage.corpora import CorpusBook
from gradewire_server.storage.lru import SegmentedLru
from gradewire_server.storage.opening import Stores
from gradewire_server.storage.prepared import PreparedAnswersBook
from gradewire_server.storage.telemetry import EngineTelemetry
from gradewire_server.storage.vector_kind import SENTENCE, WORDS


@dataclass(frozen=True, slots=True)
class EngineHealth:
    """What works.

    Attributes:
        models: Whether each model that the engine was told to load or has used is there, and can compute where it was
            told to load it.
        troubles: Why one of them cannot, where that is known.
        degraded: Why scoring is slower than it could be; empty when all is well. Scores are right all the same.
        judge: Whether the judge works, which nothing else depends on.
    """

    models: Mapping[str, bool]
    troubles: Mapping[str, str]
    degraded: tuple[str, ...]
    judge: JudgeHealth


class VectorEngine(Engine):
    """Cache and models. Lives on the event loop it was made on.

    Args:
        config: See `EngineConfig`.
        stores: What stands behind the cache; the engine closes them.
        telemetry: Where it is counted.
        source: Where models come from; the engine closes it.
        judges: Makes the judges' service over a cache of verdicts; the engine closes it.
    """

    def __init__(
        self,
        config: EngineConfig,
        stores: Stores,
        telemetry: EngineTelemetry,
        source: ModelSource,
        judges: Callable[[VerdictCache], JudgeService],
    ) -> None:
        self._config = config
        self._telemetry = telemetry
        self._stores = stores
        self._closed = False
        self._lru = SegmentedLru(config.cache.memory_max_bytes)
        self._cache = VectorCache(
            self._lru, stores.vectors, telemetry, max_pending_writes=config.cache.max_pending_writes
        )
        self._prepared = PreparedAnswersBook(stores.prepared, namespace=config.cache.namespace)
        self._corpora = CorpusBook(stores.prepared, namespace=config.cache.namespace)
        self._thesaurus = Thesaurus(config.wordnet_directory)
        verdicts = VerdictCache(
            self._lru,
            stores.vectors,
            telemetry,
            namespace=config.cache.namespace,
            max_pending_writes=config.cache.max_pending_writes,
        )
        self._judges = judges(verdicts)
        self._source = source
        self._told: dict[str, None] = {}
        self._library = ModelLibrary(
            source,
            default=config.default_model,
            namespace=config.cache.namespace,
            assemble=lambda parts: Encoder(parts, self._cache, telemetry),
        )
        telemetry.gauge("memory_bytes", "Bytes in the in-process cache.", lambda: self._lru.used_bytes)
        telemetry.gauge("memory_entries", "Entries of the in-process cache.", lambda: len(self._lru))
        telemetry.gauge("in_flight_texts", "Texts that are being worked out.", lambda: self._cache.in_flight)
        evicted = self._lru.counters
        telemetry.total("memory_evictions", "Entries pushed out of memory.", lambda: evicted.evicted_entries)

    async def load(self, name: str) -> ModelStatus | Failure:
        """Loads and warms up a model, "" being the default one; `health` says from then on whether it is well.

        A failure says how to get it, or that it is waited for (UNAVAILABLE).
        """
        self._told[name or self._library.default] = None
        loaded = await self._library.load(name)
        return loaded if isinstance(loaded, Failure) else loaded.status

    async def preload(self) -> None:
        """Loads what the settings ask to load at start; `health` shows what cannot be had.

        A judge is opened beside: it may take a minute, and the others must not wait for it.
        """
        if self._config.judge.preload:
            self._judges.load_soon()
        for name in self._config.preload:
            await self.load(name)

    async def close(self) -> None:
        """Fails what is queued, finishes what is running, writes back what is computed. Closing twice is allowed."""
        if self._closed:
            return
        self._closed = True
        await self._judges.close()
        await self._library.close()
        await self._source.close()
        await self._cache.close()
        await self._prepared.close()

    def health(self) -> EngineHealth:
        """Models and stores as they are now.

        What callers happened to ask for does not make the engine sick: it is no more than degraded.
        """
        library = self._library
        troubles = {name: self._source.trouble(name) for name in library.loaded}
        troubles |= {name: failure.message for name, failure in library.awaited.items()}
        troubles = {name: why for name, why in (library.unusable | troubles).items() if why}
        preloaded = [name or library.default for name in self._config.preload]
        told = dict.fromkeys([*preloaded, *(name for name in self._told if name in library.loaded or name in troubles)])
        models = {name: name in library.loaded and name not in troubles for name in told}
        models |= {name: True for name in library.loaded if name not in told}
        degraded = [why for name, why in troubles.items() if name not in told]
        return EngineHealth(models, troubles, (*degraded, *self._stores.degraded()), self._judges.health())

    async def embed(
        self, model: str, texts: Sequence[str], tiers: Sequence[Tier], *, deadline_s: float | None = None
    ) -> EmbedReply:
        """See `Engine.embed`."""
        loaded = self._library.find(model) or await self._library.load(model)
        if isinstance(loaded, Failure):
            self._telemetry.failures.labels(loaded.status.name.lower()).inc(len(texts))
            return failed_sentences(loaded, len(texts))
        call = await self._cache.fetch(loaded.encoder, texts, tiers, part=SENTENCE, deadline_s=deadline_s)
        reply = sentence_reply(call, loaded.encoder.spaces.dims)
        self._telemetry.answered(call.sources, reply.failures.items())
        return reply

    async def embed_tokens(
        self,
        model: str,
        texts: Sequence[str],
        tiers: Sequence[Tier],
        *,
        layer: int = 0,
        deadline_s: float | None = None,
    ) -> TokensReply:
        """See `Engine.embed_tokens`."""
        loaded = self._library.find(model) or await self._library.load(model)
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
        call = await self._cache.fetch(loaded.encoder, texts, tiers, part=layer, deadline_s=deadline_s)
        reply = await tokens_reply(call, loaded.encoder.spaces.dims)
        failed = [(position, item) for position, item in enumerate(reply.items) if isinstance(item, Failure)]
        self._telemetry.answered(call.sources, failed)
        return reply

    async def token_ids(self, model: str, texts: Sequence[str]) -> Sequence[NDArray[np.int32]] | Failure:
        """See `Engine.token_ids`."""
        loaded = self._library.find(model) or await self._library.load(model)
        return loaded if isinstance(loaded, Failure) else await loaded.encoder.token_ids(texts)

    async def prepared_answers(
        self, reference_set: str, question: str, references: Sequence[str]
    ) -> PreparedAnswers | Failure:
        """See `Engine.prepared_answers`."""
        return await self._prepared.find(reference_set, question, references)

    async def store_prepared(self, reference_set: str, question: str, answers: Mapping[str, str]) -> Failure | None:
        """See `Engine.store_prepared`."""
        return await self._prepared.store(reference_set, question, answers)

    async def synonyms(self, words: Sequence[str]) -> Synonyms | Failure:
        """See `Engine.synonyms`."""
        return await self._thesaurus.synonyms(words)

    async def entries(self, reference_set: str) -> ReferenceEntries | Failure:
        """See `Engine.entries`."""
        return await self._corpora.entries(reference_set)

    async def entries_revision(self, reference_set: str) -> str | Failure:
        """See `Engine.entries_revision`."""
        return await self._corpora.revision(reference_set)

    async def store_entries(self, reference_set: str, entries: ReferenceEntries) -> Failure | None:
        """See `Engine.store_entries`."""
        return await self._corpora.store(reference_set, entries)

    def models(self) -> Sequence[ModelStatus]:
        """See `Engine.models`. Reads the repository's descriptions."""
        return self._library.statuses()

    def model(self, name: str) -> ModelStatus | Failure:
        """See `Engine.model`. A loaded one is answered from memory."""
        return self._library.status(name)

    async def choose(self, need: Choose, *, deadline_s: float | None = None) -> JudgeReply[Choice]:
        """See `Engine.choose`."""
        return await self._judges.choose(need, deadline_s=deadline_s)

    async def generate(self, need: Generate, *, deadline_s: float | None = None) -> JudgeReply[Generated]:
        """See `Engine.generate`."""
        return await self._judges.generate(need, deadline_s=deadline_s)

    def judges(self) -> Sequence[ModelStatus]:
        """See `Engine.judges`."""
        return self._judges.statuses()

    def judge(self, name: str) -> ModelStatus | Failure:
        """See `Engine.judge`. A loaded one is answered from memory."""
        return self._judges.status(name)
