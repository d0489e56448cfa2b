"""A library of models, which loads models from a source at first use and replaces loaded models."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Protocol, TypeAlias

from typing_extensions import override

from gradewire_models.catalog.loading import default_model, load_catalog
from gradewire_models.errors import ModelBrokenError, ModelError, ModelNotBuiltError
from gradewire_models.repository.built import BuiltModel
from gradewire_server.domain.items import Failure, Status, quoted, shortened
from gradewire_server.domain.metric import Calibration, ModelMetadata, TokenLayer
from gradewire_server.domain.ports import REPLACED, ModelIndex, ModelStatus
from gradewire_server.encoders.cached_encoder import CachedEncoder
from gradewire_server.encoders.encoder import SHUTTING_DOWN, Encoder
from gradewire_server.resilience import SingleFlight

_log = logging.getLogger(__name__)

Stamp: TypeAlias = tuple[str, *tuple[int, ...]]


class NotNowError(Exception):
    """Raised when a model exists but cannot be used until the source loads it again."""

    def __init__(self, model: BuiltModel, failure: Failure) -> None:
        super().__init__(failure.message)
        self.model = model
        self.failure = failure


class UnusableError(Exception):
    """Raised when the source cannot run an intact model. The message is for callers."""


class ModelSource(Protocol):
    """A source of models. For one event loop only."""

    def listed(self) -> Sequence[BuiltModel]:
        """Return all models that are not broken. Read only small files."""

    def describe(self, name: str) -> BuiltModel:
        """Return one model; raise ModelNotBuiltError or ModelBrokenError."""

    async def open(self, name: str, *, namespace: str) -> Encoder:
        """Open a model and prepare it for runs.

        Raises:
            ModelError: The model is missing or broken.
            UnusableError: The model exists, but this source cannot run it.
            NotNowError: The model exists, but cannot be used now.
        """

    def trouble(self, name: str) -> str:
        """Return the reason why an opened model cannot compute now, or "" if the model works."""
        del name
        return ""

    async def close(self) -> None:
        """Release all resources. Close all encoders before the source."""
        return


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A loaded model. `rough` is an encoder for approximate vectors, if the model has such an encoder."""

    encoder: CachedEncoder
    status: ModelStatus
    rough: CachedEncoder | None = None
    degraded: str = ""

    async def close(self, reason: Failure = SHUTTING_DOWN) -> None:
        """Fail queued texts with `reason` and wait for running texts."""
        await self.encoder.close(reason)
        if self.rough is not None:
            await self.rough.close(reason)


class ModelLibrary(ModelIndex):
    """The models from a source and the catalog.

    A reference to a model is NAME, NAME@DIGEST (exactly this build) or "" (the default model).

    Attributes:
        awaited: Failures by model name, for models that cannot be used until the source loads them again.
        unusable: Reasons by model name, only for the default model and for models that were usable or awaited before.
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
        self._loading: SingleFlight[str, LoadedModel | Failure] = SingleFlight()
        self._retiring: set[asyncio.Task[None]] = set()
        self._broken: dict[str, tuple[Stamp, str]] = {}
        self._described: dict[str, ModelStatus] = {}
        self._logged: dict[str, str] = {}

    def find(self, reference: str) -> LoadedModel | None:
        """Return a model if it is loaded; otherwise return None."""
        name, _, digest = reference.partition("@")
        loaded = self.loaded.get(name or self.default)
        return None if loaded is None or digest not in {"", loaded.status.digest} else loaded

    async def load(self, reference: str) -> LoadedModel | Failure:
        """Return a model, and load it if necessary. For a model in `awaited`, return the failure at once."""
        name, _, digest = reference.partition("@")
        name = name or self.default
        loaded = self.loaded.get(name) or self.awaited.get(name) or await self.reload(name)
        if digest and isinstance(loaded, LoadedModel) and loaded.status.digest != digest:
            return REPLACED
        return loaded

    async def reload(self, name: str) -> LoadedModel | Failure:
        """Open a model again and replace the loaded model. If opening fails, remove the loaded model."""
        return await self._loading.result(name, partial(self._load, name))

    @override
    def status(self, name: str) -> ModelStatus | Failure:
        name = name or self.default
        if name in self.loaded:
            return self.loaded[name].status
        awaited = self.awaited.get(name)
        if awaited is not None:
            return awaited if awaited.status is Status.MODEL_UNAVAILABLE else self._described[name]
        known = {status.name: status for status in self.statuses()}
        if name in known:
            status = known[name]
            return status if status.state == "built" else Failure(Status.MODEL_UNAVAILABLE, status.message)
        try:
            self._source.describe(name)
        except ModelBrokenError as error:
            return Failure(Status.MODEL_UNAVAILABLE, _unusable_message(name, error))
        except ModelError as error:
            if name in load_catalog():  # a variant that is not built
                return Failure(Status.MODEL_UNAVAILABLE, _unusable_message(name, error))
            _log.debug("unknown model %s", quoted(name))
        message = f"unknown model {quoted(name)}. Known models: {', '.join(known)}"
        return Failure(Status.MODEL_UNAVAILABLE, message)

    @override
    def statuses(self) -> list[ModelStatus]:
        # Variants are listed only if they are built.
        built = {model.name: model for model in self._source.listed()}
        known = [name for name, entry in load_catalog().items() if not entry.base or name == self.default]
        names = dict.fromkeys([*known, *built, *self.loaded])
        return [self._describe(name, built.get(name)) for name in names]

    async def close(self) -> None:
        """Wait for loads in progress, then close all encoders."""
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
            self._described[name] = _status_of(error.model, state="built", is_default=name == self.default)
            self._put(name, None)
            self._forgive(name)
            return error.failure
        except UnusableError as error:
            return self._unusable(name, str(error))
        except ModelError as error:
            return self._unusable(name, _unusable_message(name, error), log=str(error))
        except Exception:  # noqa: BLE001 - ONNX Runtime and the tokenizer may raise any error
            _log.exception("cannot load model %s", name)
            return self._unusable(name, f"model {quoted(name)} cannot be loaded. See the server's log")
        status = _status_of(encoder.model, state="loaded", is_default=name == self.default)
        rough = encoder.rough
        if rough is not None:
            metadata = replace(status.metadata, rough_cosine_error=rough.cosine_error)
            status = replace(status, metadata=metadata, remarks=(*status.remarks, rough.note))
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
        """Replace the loaded model, or remove it if `loaded` is None."""
        old = self.loaded.pop(name, None)
        if old is not None:
            task = asyncio.get_running_loop().create_task(old.close(REPLACED))
            self._retiring.add(task)
            task.add_done_callback(self._retiring.discard)
        if loaded is not None:
            self.loaded[name] = loaded

    def still_awaited(self, name: str, failure: Failure) -> None:
        """Replace the failure of a model that is in `awaited`; do nothing for any other model."""
        if name in self.awaited:
            self.awaited[name] = failure

    def _forgive(self, name: str) -> None:
        self.unusable.pop(name, None)
        self._logged.pop(name, None)

    def _unusable(self, name: str, message: str, *, log: str = "") -> Failure:
        # Remember nothing about other names, because callers may invent any number of names.
        kept = name == self.default or name in self.loaded or name in self.awaited or name in self.unusable
        if log and self._logged.get(name) != log:
            _log.warning("cannot load model %s: %s", name, log)
        if kept:
            self.unusable[name], self._logged[name] = message, log
        self._put(name, None)
        self.awaited.pop(name, None)
        for model in self._source.listed():
            if model.name == name:
                self._broken[name] = (_stamp_of(model), message)
        return Failure(Status.MODEL_UNAVAILABLE, message)

    def _describe(self, name: str, built: BuiltModel | None) -> ModelStatus:
        if name in self.loaded:
            return self.loaded[name].status
        is_default = name == self.default
        awaited = self.awaited.get(name)
        if built is not None and awaited is not None and awaited.status is Status.MODEL_UNAVAILABLE:
            return _status_of(built, state="broken", is_default=is_default, message=awaited.message)
        if built is not None:
            stamp, message = self._broken.get(name, (None, ""))
            if stamp == _stamp_of(built):
                return _status_of(built, state="broken", is_default=is_default, message=message)
            return _status_of(built, state="built", is_default=is_default)
        try:
            self._source.describe(name)
            state, message = "built", ""  # built since the repository was listed
        except ModelNotBuiltError as error:
            state, message = "missing", _unusable_message(name, error)
        except ModelBrokenError as error:
            state, message = "broken", _unusable_message(name, error)
        return _catalog_status(name, state=state, is_default=is_default, message=message)


def _stamp_of(model: BuiltModel) -> Stamp:
    """Return the digest and modification times. A new build or a manual repair changes the result."""
    paths = (model.onnx_path, model.tokenizer_path, *([model.weights_path] if model.weights_path else []))
    return model.digest, *map(_changed_ns, paths)


def _changed_ns(path: Path) -> int:
    """Return a file's modification time, or 0 if the file is missing."""
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return 0


def _unusable_message(name: str, error: ModelError) -> str:
    """Return a message for remote callers, without this machine's paths."""
    catalog = load_catalog()
    build = f"gradewire models build {name if name in catalog else 'NAME'}"
    if not isinstance(error, ModelNotBuiltError):
        verify = f"gradewire models verify {shortened(name)}"
        return f"model {quoted(name)} is broken. Run {verify} to see the reason, or {build} to replace the model"
    known = "" if name in catalog else f" The catalog has {', '.join(catalog)}."
    return f"Model {name if name in catalog else quoted(name)} is not built.{known} Run: {build}"


def _status_of(model: BuiltModel, *, state: str, is_default: bool, message: str = "") -> ModelStatus:
    known = load_catalog().get(model.name)
    return ModelStatus(
        name=model.name,
        digest=model.digest,
        state=state,
        message=message,
        how_to_get=known.build_hint if known else "",
        is_default=is_default,
        dims=model.dims,
        max_tokens=model.max_tokens,
        licence=model.licence,
        precision=model.numeric_class,
        metadata=_metadata_of(model),
        kind=model.kind,
        remarks=model.remarks,
    )


def _catalog_status(name: str, *, state: str, is_default: bool, message: str = "") -> ModelStatus:
    known = load_catalog()[name]
    return ModelStatus(
        name=name,
        digest=known.digest if state == "built" else "",
        state=state,
        message=message,
        how_to_get=known.build_hint,
        is_default=is_default,
        dims=known.metadata.dims,
        max_tokens=known.max_tokens,
        licence=known.licence,
        precision=known.numeric_class,
        kind=known.kind,
    )


def _metadata_of(model: BuiltModel) -> ModelMetadata:
    measured = model.bertscore
    baselines = measured.baselines if measured else {}
    return ModelMetadata(
        calibrations=tuple(
            Calibration(**{field.name: getattr(each, field.name) for field in fields(Calibration)})
            for each in model.calibrations
        ),
        unreadable=tuple((each.metric, each.summary) for each in model.unreadable),
        token_layers=tuple(TokenLayer(layer, baselines.get(layer)) for layer in model.token_layers),
        # For an unmeasured model, use the last layer, because training has shaped the last layer's vectors.
        bertscore_layer=measured.layer if measured else model.layers,
        digest=model.digest,
        temperature=model.temperature,
    )
