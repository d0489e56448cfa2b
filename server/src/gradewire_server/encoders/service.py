"""The encoders of the server: loaded once at their first use, cached, watched, and called for the needs of metrics."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from numpy import int32
from numpy.typing import NDArray
from typing_extensions import override

from gradewire_models.catalog.loading import default_model, grader_models, load_catalog
from gradewire_models.errors import ModelBrokenError, ModelError, ModelNotBuiltError
from gradewire_models.repository.built import BuiltModel
from gradewire_server.domain.items import Failure, Status, quoted
from gradewire_server.domain.needs import GradedTexts, Tier
from gradewire_server.domain.ports import (
    REPLACED,
    Embeddings,
    EmbedReply,
    GradeReply,
    Graders,
    ModelIndex,
    ModelStatus,
    TokensReply,
)
from gradewire_server.encoders.cached_encoder import CachedEncoder
from gradewire_server.encoders.encoder import SHUTTING_DOWN, Encoder, ModelSource, NotNowError, UnusableError
from gradewire_server.encoders.model_status import Stamp, catalog_status, stamp_of, status_of, unusable_message
from gradewire_server.encoders.outputs import (
    failed_call,
    failures_of,
    grade_reply,
    sentence_reply,
    tokens_reply,
)
from gradewire_server.encoders.pending import VectorCall
from gradewire_server.encoders.prometheus import EncoderTelemetry
from gradewire_server.encoders.tokenizer import joined
from gradewire_server.resilience import SingleFlight
from gradewire_server.storage.codec import SENTENCE, WORDS

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model that is ready.

    Attributes:
        encoder: Runs it, behind the cache.
        status: Its public face.
        rough: Makes approximate vectors of it, behind the cache under names of their own; None where nothing does.
        degraded: See `Encoder`.
    """

    encoder: CachedEncoder
    status: ModelStatus
    rough: CachedEncoder | None = None
    degraded: str = ""

    async def close(self, reason: Failure = SHUTTING_DOWN) -> None:
        """Fails what is queued with `reason`, waits for what is running."""
        await self.encoder.close(reason)
        if self.rough is not None:
            await self.rough.close(reason)


class ModelLibrary(ModelIndex):
    """The models of a source and of the catalog.

    A call refers to a model as NAME, as NAME@DIGEST (that one or none), or by "" for the default one.

    Args:
        source: Where models come from.
        default: Name that "" stands for; empty for the catalog's default.
        namespace: See `CacheConfig.namespace`.
        wrap: Puts the cache around an encoder that was opened.

    Attributes:
        default: The default model's name.
        loaded: By name.
        awaited: Models that somebody asked for and that cannot be used now, with what was said.
        unusable: The default model and those that were loaded or awaited once, where they are of no use, and why.
    """

    def __init__(
        self, source: ModelSource, *, default: str, namespace: str, wrap: Callable[[Encoder], CachedEncoder]
    ) -> None:
        self._source = source
        self.default = default or default_model().name
        self._namespace = namespace
        self._wrap = wrap
        self.loaded: dict[str, LoadedModel] = {}
        self.awaited: dict[str, Failure] = {}
        self.unusable: dict[str, str] = {}
        self._by_reference: dict[str, LoadedModel] = {}
        self._loading: SingleFlight[str, LoadedModel | Failure] = SingleFlight()
        self._retiring: set[asyncio.Task[None]] = set()
        self._broken: dict[str, tuple[Stamp, str]] = {}
        self._described: dict[str, ModelStatus] = {}
        self._logged: dict[str, str] = {}

    def find(self, reference: str) -> LoadedModel | None:
        """A model that is loaded."""
        return self._by_reference.get(reference)

    async def load(self, reference: str) -> LoadedModel | Failure:
        """Loads a model, or joins those who do; one that is awaited fails at once, for its source sees to it."""
        name, _, digest = reference.partition("@")
        name = name or self.default
        loaded = self.loaded.get(name) or self.awaited.get(name) or await self.reload(name)
        if digest and isinstance(loaded, LoadedModel) and loaded.status.digest != digest:
            return REPLACED
        return loaded

    async def reload(self, name: str) -> LoadedModel | Failure:
        """Opens a model anew: it takes the place of the one that is loaded, which is gone also where that fails."""
        return await self._loading.result(name, partial(self._load, name))

    @override
    def status(self, name: str) -> ModelStatus | Failure:
        # Of a loaded or awaited one without touching the disk.
        name = name or self.default
        loaded = self.loaded.get(name)
        if loaded is not None:
            return loaded.status
        awaited = self.awaited.get(name)
        if awaited is not None:
            return awaited if awaited.status is Status.MODEL_UNAVAILABLE else self._described[name]
        for status in self.statuses():
            if status.name == name:
                if status.state == "built":
                    return status
                return Failure(Status.MODEL_UNAVAILABLE, status.message)
        try:
            self._source.describe(name)
        except ModelBrokenError as error:
            return Failure(Status.MODEL_UNAVAILABLE, unusable_message(name, error))
        except ModelError:
            _log.debug("nobody knows of a model %s", quoted(name))
        return Failure(
            Status.MODEL_UNAVAILABLE,
            f"there is no model {quoted(name)}; known are: {', '.join(status.name for status in self.statuses())}",
        )

    @override
    def statuses(self) -> list[ModelStatus]:
        # Catalog first, then what else is built; variants of a model only where they are built.
        built = {model.name: model for model in self._source.listed()}
        known = [name for name, entry in load_catalog().items() if not entry.base or name == self.default]
        names = dict.fromkeys([*known, *built, *self.loaded])
        return [self._describe(name, built.get(name)) for name in names]

    async def close(self) -> None:
        """Waits for what is loading, then ends all encoders."""
        await self._loading.wait()
        for loaded in self.loaded.values():
            await loaded.close()
        if self._retiring:
            await asyncio.wait(self._retiring)

    async def _load(self, name: str) -> LoadedModel | Failure:
        try:
            encoder = await self._source.open(name, namespace=self._namespace)
        except NotNowError as error:
            if self.awaited.get(name) != error.failure:
                _log.warning("model %s cannot be used now: %s", name, error.failure.message)
            self.awaited[name] = error.failure
            self._described[name] = status_of(error.model, state="built", is_default=name == self.default)
            self._put(name, None)
            self._forgive(name)
            return error.failure
        except UnusableError as error:
            return self._unusable(name, str(error))
        except ModelError as error:
            return self._unusable(name, unusable_message(name, error), log=str(error))
        except Exception:  # noqa: BLE001 - whatever ONNX Runtime or the tokenizer raise about a file
            _log.exception("model %s cannot be loaded", name)
            return self._unusable(name, f"model {quoted(name)} cannot be loaded; the server's log says why")
        status = status_of(encoder.model, state="loaded", is_default=name == self.default)
        rough = encoder.rough
        if rough is not None:
            metadata = replace(status.metadata, rough_cosine_error=rough.cosine_error)
            status = replace(status, metadata=metadata, remarks=(*status.remarks, rough.remark))
        if encoder.degraded:
            status = replace(status, remarks=(*status.remarks, encoder.degraded))
        wrapped = None if rough is None else self._wrap(rough.encoder)
        loaded = LoadedModel(self._wrap(encoder), status, wrapped, encoder.degraded)
        self._put(name, loaded)
        self.awaited.pop(name, None)
        self._broken.pop(name, None)
        self._forgive(name)
        return loaded

    def _put(self, name: str, loaded: LoadedModel | None) -> None:
        """Sets what a name stands for; what it stood for before ends as soon as its runs have."""
        old = self.loaded.pop(name, None)
        if old is not None:
            self._by_reference = {key: each for key, each in self._by_reference.items() if each is not old}
            task = asyncio.get_running_loop().create_task(old.close(REPLACED))
            self._retiring.add(task)
            task.add_done_callback(self._retiring.discard)
        if loaded is not None:
            self.loaded[name] = loaded
            self._by_reference |= {name: loaded, f"{name}@{loaded.status.digest}": loaded}
            if name == self.default:
                self._by_reference[""] = loaded

    def still_awaited(self, name: str, failure: Failure) -> None:
        """Takes note of why an awaited model cannot be used yet."""
        if name in self.awaited:
            self.awaited[name] = failure

    def _forgive(self, name: str) -> None:
        self.unusable.pop(name, None)
        self._logged.pop(name, None)

    def _unusable(self, name: str, message: str, *, log: str = "") -> Failure:
        # Of names that nobody has seen well nothing is kept: callers may invent as many as they like.
        kept = name == self.default or name in self.loaded or name in self.awaited or name in self.unusable
        if log and self._logged.get(name) != log:
            _log.warning("model %s cannot be loaded: %s", name, log)
        if kept:
            self.unusable[name], self._logged[name] = message, log
        self._put(name, None)
        self.awaited.pop(name, None)
        for model in self._source.listed():
            if model.name == name:
                self._broken[name] = (stamp_of(model), message)
        return Failure(Status.MODEL_UNAVAILABLE, message)

    def _describe(self, name: str, built: BuiltModel | None) -> ModelStatus:
        if name in self.loaded:
            return self.loaded[name].status
        is_default = name == self.default
        awaited = self.awaited.get(name)
        if built is not None and awaited is not None and awaited.status is Status.MODEL_UNAVAILABLE:
            return status_of(built, state="broken", is_default=is_default, message=awaited.message)
        if built is not None:
            stamp, message = self._broken.get(name, (None, ""))
            if stamp == stamp_of(built):
                return status_of(built, state="broken", is_default=is_default, message=message)
            return status_of(built, state="built", is_default=is_default)
        try:
            self._source.describe(name)
            state, message = "built", ""  # built since the repository was listed
        except ModelNotBuiltError as error:
            state, message = "missing", unusable_message(name, error)
        except ModelBrokenError as error:
            state, message = "broken", unusable_message(name, error)
        return catalog_status(name, state=state, is_default=is_default, message=message)


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
        return await self._sentences(loaded, texts, tiers, deadline_s=deadline_s)

    @override
    async def embed_roughly(
        self, model: str, texts: Sequence[str], tiers: Sequence[Tier], *, deadline_s: float | None = None
    ) -> EmbedReply:
        loaded = self.library.find(model) or await self.library.load(model)
        return await self._sentences(loaded, texts, tiers, deadline_s=deadline_s, rough=True)

    async def _sentences(
        self,
        loaded: LoadedModel | Failure,
        texts: Sequence[str],
        tiers: Sequence[Tier],
        *,
        deadline_s: float | None,
        rough: bool = False,
    ) -> EmbedReply:
        if isinstance(loaded, Failure):
            call, dims = failed_call(loaded, len(texts)), 0
        else:
            encoder = self._encoder(loaded, rough=rough)
            call, dims = await encoder.fetch(texts, tiers, kind=SENTENCE, deadline_s=deadline_s), encoder.spaces.dims
        return sentence_reply(call, dims, self._counted(call))

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
            call, dims = failed_call(loaded, len(texts)), 0
        else:
            encoder = self._encoder(loaded)
            layers, dims = encoder.layers, encoder.spaces.dims
            if layer != WORDS and layer not in layers:
                failure = Failure(
                    Status.INVALID_PARAMETER,
                    f"layer: {loaded.status.name} gives token vectors of {', '.join(map(str, layers))}, not of {layer}",
                )
                return await tokens_reply(failed_call(failure, len(texts)), dims)
            call = await encoder.fetch(texts, tiers, kind=layer, deadline_s=deadline_s)
        self._counted(call)
        return await tokens_reply(call, dims)

    @override
    async def grade(self, model: str, items: Sequence[GradedTexts], *, deadline_s: float | None = None) -> GradeReply:
        loaded = self.library.find(model) or await self.library.load(model)
        if isinstance(loaded, Failure):
            call = failed_call(loaded, len(items))
        else:
            texts, tiers = [joined(item) for item in items], [Tier.PREDICTION] * len(items)
            call = await self._encoder(loaded).fetch(texts, tiers, kind=SENTENCE, deadline_s=deadline_s)
        return grade_reply(call, self._counted(call))

    def _counted(self, call: VectorCall) -> dict[int, Failure]:
        """Count the texts of a settled call; return its failures by position."""
        failures = failures_of(call)
        self._telemetry.count_answers(call.sources, failures.items())
        return failures

    @override
    async def token_ids(self, model: str, texts: Sequence[str]) -> Sequence[NDArray[int32]] | Failure:
        loaded = self.library.find(model) or await self.library.load(model)
        return loaded if isinstance(loaded, Failure) else await loaded.encoder.token_ids(texts)

    def _encoder(self, loaded: LoadedModel, *, rough: bool = False) -> CachedEncoder:
        encoder = loaded.rough if rough and loaded.rough is not None else loaded.encoder
        return encoder.within(self._namespace) if self._namespace else encoder


_OTHER = {"encoder": "a grader, which reads question, reference and answer together", "grader": "an encoder"}


class ModelsOfKind(ModelIndex):
    """A view of a library.

    Args:
        library: Of encoders and graders.
        kind: "encoder" or "grader".
    """

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
            f"model {found.name} is {_OTHER[self._kind]}; {self._kind}s known here are: {known}",
        )


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
