"""Which models there are, which are loaded, and loading: once, however many ask at the same time."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from typing_extensions import override

from gradewire_models.catalog.loading import default_model, load_catalog
from gradewire_models.errors import ModelBrokenError, ModelError, ModelNotBuiltError
from gradewire_models.repository.built import BuiltModel
from gradewire_server.concurrency.single_flight import SingleFlight
from gradewire_server.domain.ports import REPLACED, ModelIndex, ModelStatus
from gradewire_server.domain.quoting import quoted
from gradewire_server.domain.result import Failure, Status
from gradewire_server.encoders.cache.cached_encoder import CachedEncoder
from gradewire_server.encoders.encoder import SHUTTING_DOWN, Encoder
from gradewire_server.encoders.model_status import Stamp, catalog_status, stamp_of, status_of, why_not
from gradewire_server.encoders.source import ModelSource, NotNowError, UnusableError

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
            return Failure(Status.MODEL_UNAVAILABLE, why_not(name, error))
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
            return self._unusable(name, why_not(name, error), log=str(error))
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
            state, message = "missing", why_not(name, error)
        except ModelBrokenError as error:
            state, message = "broken", why_not(name, error)
        return catalog_status(name, state=state, is_default=is_default, message=message)
