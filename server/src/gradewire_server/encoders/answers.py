"""Answers what needs vectors, for one namespace: finds the model, asks it behind its cache, counts the answers."""

from collections.abc import Sequence

from numpy import int32
from numpy.typing import NDArray
from typing_extensions import override

from gradewire_server.domain.needs import GradedTexts, Tier
from gradewire_server.domain.ports import Embeddings, EmbedReply, GradeReply, Graders, TokensReply
from gradewire_server.domain.result import Failure, Status
from gradewire_server.encoders.cache.cached_encoder import CachedEncoder
from gradewire_server.encoders.grading.replies import failed_grades, grade_reply
from gradewire_server.encoders.grading.texts import joined
from gradewire_server.encoders.library import LoadedModel, ModelLibrary
from gradewire_server.encoders.replies import failed_sentences, failed_tokens, sentence_reply, tokens_reply
from gradewire_server.encoders.telemetry import EncoderTelemetry
from gradewire_server.storage.vector_kind import SENTENCE, WORDS


class EncoderAnswers(Embeddings, Graders):
    """Answers for callers of one namespace. Lives on the event loop of its library.

    Args:
        library: Models that are loaded, or can be.
        telemetry: Where answers are counted.
        namespace: Whose entries are found and kept; empty: those of the server's own.
    """

    def __init__(self, library: ModelLibrary, telemetry: EncoderTelemetry, *, namespace: str = "") -> None:
        self.library = library
        self._telemetry = telemetry
        self._namespace = namespace

    @override
    async def embed(
        self, model: str, texts: Sequence[str], tiers: Sequence[Tier], *, deadline_s: float | None = None
    ) -> EmbedReply:
        loaded = self.library.find(model) or await self.library.load(model)
        if isinstance(loaded, Failure):
            self._telemetry.failures.labels(loaded.status.name.lower()).inc(len(texts))
            return failed_sentences(loaded, len(texts))
        return await self._sentences(self._encoder(loaded), texts, tiers, deadline_s=deadline_s)

    @override
    async def embed_roughly(
        self, model: str, texts: Sequence[str], tiers: Sequence[Tier], *, deadline_s: float | None = None
    ) -> EmbedReply:
        loaded = self.library.find(model) or await self.library.load(model)
        if isinstance(loaded, Failure) or loaded.rough is None:
            return await self.embed(model, texts, tiers, deadline_s=deadline_s)
        rough = loaded.rough.within(self._namespace) if self._namespace else loaded.rough
        return await self._sentences(rough, texts, tiers, deadline_s=deadline_s)

    async def _sentences(
        self, encoder: CachedEncoder, texts: Sequence[str], tiers: Sequence[Tier], *, deadline_s: float | None
    ) -> EmbedReply:
        call = await encoder.fetch(texts, tiers, kind=SENTENCE, deadline_s=deadline_s)
        reply = sentence_reply(call, encoder.spaces.dims)
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
        encoder = self._encoder(loaded)
        layers = encoder.layers
        if layer != WORDS and layer not in layers:
            failure = Failure(
                Status.INVALID_PARAMETER,
                f"layer: {loaded.status.name} gives token vectors of {', '.join(map(str, layers))}, not of {layer}",
            )
            return failed_tokens(failure, len(texts))
        call = await encoder.fetch(texts, tiers, kind=layer, deadline_s=deadline_s)
        reply = await tokens_reply(call, encoder.spaces.dims)
        failed = [(position, item) for position, item in enumerate(reply.items) if isinstance(item, Failure)]
        self._telemetry.answered(call.sources, failed)
        return reply

    @override
    async def grade(self, model: str, items: Sequence[GradedTexts], *, deadline_s: float | None = None) -> GradeReply:
        loaded = self.library.find(model) or await self.library.load(model)
        if isinstance(loaded, Failure):
            self._telemetry.failures.labels(loaded.status.name.lower()).inc(len(items))
            return failed_grades(loaded, len(items))
        texts, tiers = [joined(item) for item in items], [Tier.PREDICTION] * len(items)
        call = await self._encoder(loaded).fetch(texts, tiers, kind=SENTENCE, deadline_s=deadline_s)
        reply = grade_reply(call)
        self._telemetry.answered(call.sources, reply.failures.items())
        return reply

    @override
    async def token_ids(self, model: str, texts: Sequence[str]) -> Sequence[NDArray[int32]] | Failure:
        loaded = self.library.find(model) or await self.library.load(model)
        return loaded if isinstance(loaded, Failure) else await loaded.encoder.token_ids(texts)

    def _encoder(self, loaded: LoadedModel) -> CachedEncoder:
        return loaded.encoder.within(self._namespace) if self._namespace else loaded.encoder
