"""Which models there are, which are loaded, and loading: once, however many ask at the same time."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from gradewire_models.catalog import default_model, load_catalog
from gradewire_models.errors import ModelBrokenError, ModelError, ModelNotBuiltError
from gradewire_models.repository import BuiltModel, list_built, load_built
from gradewire_server.domain.engine import ModelStatus
from gradewire_server.domain.metric import Calibration
from gradewire_server.domain.result import Failure, Status
from gradewire_server.engine.config import ComputeConfig
from gradewire_server.engine.encoder import Encoder, EncoderParts
from gradewire_server.engine.keys import ModelSpaces
from gradewire_server.engine.session import EncoderSession
from gradewire_server.engine.tokenizer import TextTokenizer

_log = logging.getLogger(__name__)

_Stamp: TypeAlias = tuple[str, int, int]


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model that is ready.

    Attributes:
        encoder: Runs it.
        status: Its public face.
    """

    encoder: Encoder
    status: ModelStatus


class ModelLibrary:
    """The models of a repository and of the catalog.

    Args:
        repository: Directory of built models.
        default: Name that "" stands for; empty for the catalog's default.
        namespace: See `CacheConfig.namespace`.
        compute: How models are run.
        assemble: Makes an encoder of a model that was read; called on the event loop.
    """

    def __init__(
        self,
        repository: Path,
        *,
        default: str,
        namespace: str,
        compute: ComputeConfig,
        assemble: Callable[[EncoderParts], Encoder],
    ) -> None:
        self._repository = repository
        self.default = default or default_model().name
        self._namespace = namespace
        self._compute = compute
        self._assemble = assemble
        self.loaded: dict[str, LoadedModel] = {}
        self._loading: dict[str, asyncio.Task[LoadedModel | Failure]] = {}
        self._broken: dict[str, tuple[_Stamp, str]] = {}

    def find(self, name: str) -> LoadedModel | None:
        """A model that is loaded, "" being the default one."""
        return self.loaded.get(name or self.default)

    async def load(self, name: str) -> LoadedModel | Failure:
        """Loads and warms up a model, or joins those who wait for it. A broken one stays so until its files change."""
        name = name or self.default
        loaded = self.loaded.get(name)
        if loaded is not None:
            return loaded
        task = self._loading.get(name)
        if task is None:
            task = self._loading[name] = asyncio.get_running_loop().create_task(self._load(name))
            task.add_done_callback(lambda _: self._loading.pop(name, None))
        return await asyncio.shield(task)

    def status(self, name: str) -> ModelStatus | Failure:
        """One model, or why it cannot be used. A loaded one is answered without touching the disk."""
        name = name or self.default
        loaded = self.loaded.get(name)
        if loaded is not None:
            return loaded.status
        for status in self.statuses():
            if status.name == name:
                if status.state == "built":
                    return status
                return Failure(Status.MODEL_UNAVAILABLE, status.message)
        return Failure(
            Status.MODEL_UNAVAILABLE,
            f"there is no model {name!r}; known are: {', '.join(status.name for status in self.statuses())}",
        )

    def statuses(self) -> list[ModelStatus]:
        """Catalog first, then what else is built."""
        built = {model.name: model for model in list_built(self._repository)}
        names = dict.fromkeys([*load_catalog(), *built, *self.loaded])
        return [self._describe(name, built.get(name)) for name in names]

    async def close(self) -> None:
        """Waits for what is loading, then ends all encoders."""
        if self._loading:
            await asyncio.wait(self._loading.values())
        for loaded in self.loaded.values():
            await loaded.encoder.close()

    async def _load(self, name: str) -> LoadedModel | Failure:
        try:
            parts = await asyncio.to_thread(self._read, name)
        except ModelError as error:
            _log.warning("model %s cannot be loaded: %s", name, error)
            return self._unusable(name, _why_not(name, error))
        except Exception:  # noqa: BLE001 - whatever ONNX Runtime or the tokenizer raise about a file
            _log.exception("model %s cannot be loaded", name)
            return self._unusable(name, f"model {name!r} cannot be loaded; the server's log says why")
        status = _status(parts.model, state="loaded", is_default=parts.model.name == self.default)
        loaded = LoadedModel(self._assemble(parts), status)
        self.loaded[name] = loaded
        return loaded

    def _unusable(self, name: str, message: str) -> Failure:
        for model in list_built(self._repository):
            if model.name == name:
                self._broken[name] = (_stamp(model), message)
        return Failure(Status.MODEL_UNAVAILABLE, message)

    def _read(self, name: str) -> EncoderParts:
        model = load_built(self._repository, name)
        tokenizer = TextTokenizer(model.tokenizer_path, max_tokens=model.max_tokens, prefix=model.prefix)
        session = EncoderSession(model, self._compute)
        # Warm-up: the first runs of a session allocate and pack; a short and a longer shape take that out of the way.
        for text in ("warm", "one somewhat longer sentence to warm the encoder up before anyone waits for it"):
            for lone in (False, True):
                session.run([tokenizer.encode([text])[0].ids], with_tokens=True, lone=lone)
        spaces = ModelSpaces(namespace=self._namespace, digest=model.digest, prefix=model.prefix, dims=model.dims)
        return EncoderParts(model, session, tokenizer, spaces)

    def _describe(self, name: str, built: BuiltModel | None) -> ModelStatus:
        if name in self.loaded:
            return self.loaded[name].status
        is_default = name == self.default
        if built is not None:
            stamp, message = self._broken.get(name, (None, ""))
            if stamp == _stamp(built):
                return replace(_status(built, state="broken", is_default=is_default), message=message)
            return _status(built, state="built", is_default=is_default)
        known = load_catalog()[name]
        try:
            load_built(self._repository, name)
            state, message = "built", ""  # built since the repository was listed
        except ModelNotBuiltError as error:
            state, message = "missing", _why_not(name, error)
        except ModelBrokenError as error:
            state, message = "broken", _why_not(name, error)
        return ModelStatus(
            name=name,
            digest=known.digest if state == "built" else "",
            state=state,
            message=message,
            how_to_get=known.build_hint,
            is_default=is_default,
            dims=known.dims,
            max_tokens=known.max_tokens,
            licence=known.licence,
            numeric_class=known.numeric_class,
        )


def _stamp(model: BuiltModel) -> _Stamp:
    """Digest and times of change: differs once a model was built again or mended by hand."""
    return model.digest, model.onnx_path.stat().st_mtime_ns, model.tokenizer_path.stat().st_mtime_ns


def _why_not(name: str, error: ModelError) -> str:
    """What to do about a model; without the error's own words, which name directories and go to remote callers."""
    catalog = load_catalog()
    build = f"gradewire models build {name if name in catalog else 'NAME'}"
    if not isinstance(error, ModelNotBuiltError):
        return f"model {name!r} is broken here; gradewire models verify {name} says why, {build} replaces it"
    known = "" if name in catalog else f"the catalog has {', '.join(catalog)}; "
    return f"model {name!r} is not built here; {known}build one with: {build}"


def _status(model: BuiltModel, *, state: str, is_default: bool) -> ModelStatus:
    return ModelStatus(
        name=model.name,
        digest=model.digest,
        state=state,
        message="",
        how_to_get=load_catalog()[model.name].build_hint if model.name in load_catalog() else "",
        is_default=is_default,
        dims=model.dims,
        max_tokens=model.max_tokens,
        licence=model.licence,
        numeric_class=model.numeric_class,
        calibration=Calibration(*model.smile_calibration) if model.smile_calibration else None,
    )
