"""The encoder service, which answers metrics' requests and reports the models' health."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from gradewire_models.catalog.loading import grader_models
from gradewire_server.domain.items import Failure, Status
from gradewire_server.domain.metric import graders_of, preferred_grader
from gradewire_server.domain.needs import AnswerSource, GradedTexts, Tier, TokenVectors
from gradewire_server.domain.ports import (
    Embeddings,
    EmbedReply,
    GradeReply,
    Graders,
    ModelIndex,
    ModelStatus,
    TokensReply,
)
from gradewire_server.encoders.cached_encoder import CachedEncoder
from gradewire_server.encoders.library import ModelLibrary, ModelSource
from gradewire_server.encoders.pending import VectorCall
from gradewire_server.encoders.prometheus import EncoderTelemetry
from gradewire_server.encoders.tokenizer import joined
from gradewire_server.storage import codec
from gradewire_server.storage.codec import SENTENCE, WORDS

_INLINE_BYTES: Final = 1 << 20
"""The maximum number of bytes to decode on the event loop. Decoding this many bytes takes half a millisecond."""
_NO_LOGIT: Final = codec.encode_logit(0.0, truncated=False, pieces=1)
_OTHER_KIND: Final = {
    "encoder": "a grader, which reads question, reference and answer together",
    "grader": "an encoder",
}


class EncoderAnswers(Embeddings, Graders):
    """The encoders' answers for callers from one namespace. For the library's event loop only.

    Args:
        namespace: Namespace for cache entries; "" means the server's namespace.
    """

    def __init__(self, library: ModelLibrary, telemetry: EncoderTelemetry, *, namespace: str = "") -> None:
        self.library = library
        self._telemetry = telemetry
        self._namespace = namespace

    @override
    async def embed(
        self, model: str, texts: Sequence[str], tiers: Sequence[Tier], *, deadline_s: float | None = None
    ) -> EmbedReply:
        return _sentence_reply(await self._settled(await self._encoder(model), texts, tiers, deadline_s=deadline_s))

    @override
    async def embed_roughly(
        self, model: str, texts: Sequence[str], tiers: Sequence[Tier], *, deadline_s: float | None = None
    ) -> EmbedReply:
        encoder = await self._encoder(model, rough=True)
        return _sentence_reply(await self._settled(encoder, texts, tiers, deadline_s=deadline_s))

    @override
    async def embed_tokens(
        self,
        model: str,
        texts: Sequence[str],
        tiers: Sequence[Tier],
        *,
        layer: int = WORDS,
        deadline_s: float | None = None,
    ) -> TokensReply:
        encoder = await self._encoder(model)
        return await _tokens_reply(await self._settled(encoder, texts, tiers, layer=layer, deadline_s=deadline_s))

    @override
    async def grade(self, model: str, items: Sequence[GradedTexts], *, deadline_s: float | None = None) -> GradeReply:
        texts, tiers = [joined(item) for item in items], [Tier.PREDICTION] * len(items)
        call, _, failures = await self._settled(await self._encoder(model), texts, tiers, deadline_s=deadline_s)
        blobs = [result if isinstance(result, bytes) else _NO_LOGIT for result in call.results]
        return GradeReply(*codec.decode_logits(blobs), np.frombuffer(call.sources, np.uint8), call.timing, failures)

    @override
    async def token_ids(self, model: str, texts: Sequence[str]) -> Sequence[NDArray[np.int32]] | Failure:
        encoder = await self._encoder(model)
        return encoder if isinstance(encoder, Failure) else await encoder.token_ids(texts)

    async def _encoder(self, model: str, *, rough: bool = False) -> CachedEncoder | Failure:
        loaded = self.library.find(model) or await self.library.load(model)
        if isinstance(loaded, Failure):
            return loaded
        encoder = loaded.rough if rough and loaded.rough is not None else loaded.encoder
        return encoder.within(self._namespace) if self._namespace else encoder

    async def _settled(
        self,
        encoder: CachedEncoder | Failure,
        texts: Sequence[str],
        tiers: Sequence[Tier],
        *,
        layer: int | None = None,
        deadline_s: float | None,
    ) -> "_SettledCall":
        """Fetch the texts' token vectors from `layer`, or their sentence vectors if `layer` is None."""
        dims = 0
        if isinstance(encoder, Failure):
            call = _failed_call(encoder, len(texts))
        else:
            layers, dims = encoder.layers, encoder.spaces.dims
            if layer is None or layer == WORDS or layer in layers:
                kind = SENTENCE if layer is None else layer
                call = await encoder.fetch(texts, tiers, kind=kind, deadline_s=deadline_s)
            else:
                listed = ", ".join(map(str, layers))
                message = f"layer: {encoder.name} has no token vectors for layer {layer}, only for {listed}"
                call = _failed_call(Failure(Status.INVALID_PARAMETER, message), len(texts))
        failures = {position: result for position, result in enumerate(call.results) if isinstance(result, Failure)}
        self._telemetry.count_answers(call.sources, failures.items())
        return _SettledCall(call, dims, failures)


class _SettledCall(NamedTuple):
    call: VectorCall
    dims: int
    failures: Mapping[int, Failure]


def _failed_call(failure: Failure, size: int) -> VectorCall:
    call = VectorCall(size, deadline_s=None)
    call.results = [failure] * size
    call.sources = bytearray([AnswerSource.COMPUTED] * size)
    return call


def _sentence_reply(settled: _SettledCall) -> EmbedReply:
    call, dims, failures = settled
    values, truncated = codec.decode_blobs([result for result in call.results if isinstance(result, bytes)], dims)
    if failures:
        good = np.array([isinstance(result, bytes) for result in call.results], np.bool_)
        all_values = np.zeros((len(good), dims), np.float32)
        all_truncated = np.zeros(len(good), np.bool_)
        all_values[good], all_truncated[good] = values, truncated
        values, truncated = all_values, all_truncated
    return EmbedReply(values, truncated, np.frombuffer(call.sources, np.uint8), call.timing, failures)


async def _tokens_reply(settled: _SettledCall) -> TokensReply:
    call, dims, _ = settled
    results = [result for result in call.results if result is not None]

    def read() -> tuple[TokenVectors | Failure, ...]:
        return tuple(result if isinstance(result, Failure) else codec.decode_tokens(result, dims) for result in results)

    size = sum(len(result) for result in results if isinstance(result, bytes))
    items = await asyncio.to_thread(read) if size > _INLINE_BYTES else read()
    return TokensReply(items, np.frombuffer(call.sources, np.uint8), call.timing)


class ModelsOfKind(ModelIndex):
    """A view of a library that shows only one kind of model."""

    def __init__(self, library: ModelLibrary, kind: str) -> None:
        self._library = library
        self._kind = kind
        self._default = library.default
        if kind == "grader":
            self._default = next((model.name for model in grader_models()), "")

    @override
    def statuses(self) -> Sequence[ModelStatus]:
        return [
            replace(status, is_default=status.name == self._default)
            for status in self._library.statuses()
            if status.kind == self._kind
        ]

    @override
    def status(self, name: str) -> ModelStatus | Failure:
        name = name or self._default
        found = self._library.status(name)
        if isinstance(found, Failure) or found.kind == self._kind:
            return found
        known = ", ".join(status.name for status in self.statuses()) or "none"
        return Failure(
            Status.MODEL_UNAVAILABLE,
            f"model {found.name} is {_OTHER_KIND[self._kind]}. Known {self._kind}s: {known}",
        )


@dataclass(frozen=True, slots=True)
class EncoderHealth:
    """The models' state.

    Attributes:
        models: By model name, False for a requested model that cannot compute. True for a requested model that can
            compute, and for a loaded model that was not requested.
        degraded: Reasons why unrequested models cannot compute, and messages about settings that have no effect here.
    """

    models: Mapping[str, bool]
    troubles: Mapping[str, str]
    degraded: tuple[str, ...]


class EncoderService(EncoderAnswers):
    """A server's encoders. Only for the event loop that created the service.

    `close` calls `stop_supervision`, and then closes `library` and `source`.
    """

    def __init__(
        self,
        source: ModelSource,
        library: ModelLibrary,
        telemetry: EncoderTelemetry,
        *,
        preload: Sequence[str],
        stop_supervision: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        super().__init__(library, telemetry)
        self._source = source
        self._preload = preload
        self._stop_supervision = stop_supervision
        self._requested: dict[str, None] = {}

    async def load(self, name: str) -> ModelStatus | Failure:
        """Load and warm up a model, and the usual grader of its fits, if built. `health` then reports this model.

        "" means the default model. UNAVAILABLE means that the server waits for the model.
        """
        self._requested[name or self.library.default] = None
        loaded = await self.library.load(name)
        if isinstance(loaded, Failure):
            return loaded
        names = graders_of([each for each in loaded.status.metadata.calibrations if each.fit])
        grader = preferred_grader(names, next((each.name for each in grader_models()), ""))
        # A grader that is missing or broken fails only the metrics that need it, so `health` does not ask for it.
        if grader and not isinstance(self.library.status(grader), Failure):
            await self.library.load(grader)
        return loaded.status

    async def preload(self) -> None:
        """Load the models to preload. `health` reports failures."""
        for name in self._preload:
            await self.load(name)

    def within(self, namespace: str) -> EncoderAnswers:
        """Return the encoders for a tenant's namespace. Namespaces never share cached or pending texts."""
        return EncoderAnswers(self.library, self._telemetry, namespace=namespace)

    def health(self) -> EncoderHealth:
        """Return the models' current state.

        A broken model that only a caller requested makes the server degraded, not unhealthy.
        """
        library = self.library
        troubles = {name: self._source.trouble(name) for name in library.loaded}
        troubles |= {name: failure.message for name, failure in library.awaited.items()}
        troubles = {name: why for name, why in (library.unusable | troubles).items() if why}
        preloaded = [name or library.default for name in self._preload]
        requested = dict.fromkeys(
            [*preloaded, *(name for name in self._requested if name in library.loaded or name in troubles)]
        )
        models = {name: name in library.loaded and name not in troubles for name in requested}
        models |= {name: True for name in library.loaded if name not in requested}
        degraded = [why for name, why in troubles.items() if name not in requested]
        degraded += [loaded.degraded for loaded in library.loaded.values() if loaded.degraded]
        return EncoderHealth(models, troubles, tuple(degraded))

    async def close(self) -> None:
        """Fail queued texts and wait for running texts."""
        if self._stop_supervision is not None:
            await self._stop_supervision()
        await self.library.close()
        await self._source.close()
