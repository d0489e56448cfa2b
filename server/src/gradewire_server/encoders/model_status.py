"""The list of models: those that are here, and those that only the catalog knows."""

from dataclasses import fields
from pathlib import Path
from typing import TypeAlias

from gradewire_models.catalog.loading import load_catalog
from gradewire_models.errors import ModelError, ModelNotBuiltError
from gradewire_models.repository.built import BuiltModel
from gradewire_server.domain.items import quoted, shortened
from gradewire_server.domain.metric import Calibration, ModelMetadata, TokenLayer
from gradewire_server.domain.ports import ModelStatus

Stamp: TypeAlias = tuple[str, int, int]


def stamp_of(model: BuiltModel) -> Stamp:
    """Digest and times of change: differs once a model was built again or mended by hand."""
    return model.digest, _changed_ns(model.onnx_path), _changed_ns(model.tokenizer_path)


def _changed_ns(path: Path) -> int:
    """Time of a file's last change; 0 where it is not here, as a graph need not be that another process runs."""
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return 0


def unusable_message(name: str, error: ModelError) -> str:
    """What to do about a model; without the error's own words, which name directories and go to remote callers."""
    catalog = load_catalog()
    build = f"gradewire models build {name if name in catalog else 'NAME'}"
    if not isinstance(error, ModelNotBuiltError):
        verify = f"gradewire models verify {shortened(name)}"
        return f"model {quoted(name)} is broken here; {verify} says why, {build} replaces it"
    known = "" if name in catalog else f"the catalog has {', '.join(catalog)}; "
    return f"model {quoted(name)} is not built here; {known}build one with: {build}"


def status_of(model: BuiltModel, *, state: str, is_default: bool, message: str = "") -> ModelStatus:
    """The public face of a model that is here."""
    return ModelStatus(
        name=model.name,
        digest=model.digest,
        state=state,
        message=message,
        how_to_get=load_catalog()[model.name].build_hint if model.name in load_catalog() else "",
        is_default=is_default,
        dims=model.dims,
        max_tokens=model.max_tokens,
        licence=model.licence,
        precision=model.numeric_class,
        metadata=_metadata_of(model),
        kind=model.kind,
        remarks=model.remarks,
    )


def catalog_status(name: str, *, state: str, is_default: bool, message: str = "") -> ModelStatus:
    """The public face of a model of the catalog of which no more is known here."""
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
        # Of a model that nobody has looked into the last layer is the one that its training shaped.
        bertscore_layer=measured.layer if measured else model.layers,
        digest=model.digest,
        temperature=model.temperature,
    )
