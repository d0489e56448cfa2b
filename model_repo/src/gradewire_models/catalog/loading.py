"""Read models from ``catalog.toml`` as typed, checked values."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from gradewire_models.catalog.calibration import StoredCalibration, merge, read_calibration
from gradewire_models.catalog.derived import with_compared_fits
from gradewire_models.catalog.entries import (
    AdapterSource,
    CatalogModel,
    ComparedFits,
    Kind,
    Limits,
    Recipe,
    adapter_files,
    shipped_adapter,
)
from gradewire_models.catalog.table import (
    NAME_PATTERN,
    Count,
    Name,
    Sha256,
    Sha256OrNone,
    by_name,
    find,
    read_entry,
    read_table,
    read_toml,
)
from gradewire_models.errors import CatalogError, ModelError

Models = Mapping[str, CatalogModel]

_CATALOG_FILE = Path(__file__).with_name("catalog.toml")


@dataclass(frozen=True)
class Variant:
    """A ``[[variant]]``, with the fields in which it differs from its base."""

    name: Name
    base: str
    title: str
    numeric_class: str
    digest: Sha256OrNone
    recipe: Recipe
    limits: Limits = field(default_factory=Limits)
    compared_fits: ComparedFits | None = None


@dataclass(frozen=True)
class Adapted:
    """An ``[[adapted]]`` table; the adapter is stored in `gradewire_models.catalog` under the model's name."""

    name: Name
    base: str
    title: str
    licence: str
    origin: str
    max_tokens: Count
    text_form: str
    digest: Sha256OrNone
    files: Mapping[str, Sha256]
    calibrations: tuple[StoredCalibration, ...] = ()
    kind: Kind = "encoder"
    temperature: float = 1.0


def read_model(entry: Mapping[str, Any], directory: Path) -> CatalogModel:
    """Read a ``[[model]]``, which has the fields of `CatalogModel`. Its file names are relative to `directory`.

    Raises:
        ValueError: A field is missing, unknown or of a wrong type, or has an invalid value.
    """
    model = read_table(CatalogModel, _without_calibrations(entry))
    return _checked(replace(model, calibrations=_calibrations(entry, directory)))


def read_variant(entry: Mapping[str, Any], bases: Models) -> CatalogModel:
    """Read a ``[[variant]]`` of a ``[[model]]`` or ``[[adapted]]``; fields that are not set get the base's values.

    The base's thresholds also hold for a variant, but its fits do not (`with_compared_fits`).

    Raises:
        ValueError: A field is invalid (see `read_model`), or the variant and its base have the same numeric class.
    """
    settings = dict(entry.get("recipe", {}))
    method = {"method": settings.pop("method")} if "method" in settings else {}
    said = read_table(Variant, {**entry, "recipe": {**method, "settings": settings}})
    base = _base(said.base, bases)
    if said.numeric_class == base.numeric_class:
        raise ValueError("numeric_class must differ from the base's, or caches mix both models' vectors")
    thresholds = tuple(each for each in base.calibrations if not each.fit)
    return _checked(replace(base, default=False, calibrations=thresholds, **vars(said)))


def read_adapted(entry: Mapping[str, Any], bases: Models, directory: Path) -> CatalogModel:
    """Read an ``[[adapted]]`` table; raise the errors of `read_model`."""
    said = vars(read_table(Adapted, _without_calibrations(entry))) | {"calibrations": _calibrations(entry, directory)}
    base = _base(said.pop("base"), bases)
    files = said.pop("files")
    adapter = AdapterSource(base.name, shipped_adapter(said["name"]), files, said.pop("text_form"))
    expected = adapter_files(said["kind"])
    if set(files) != set(expected):
        raise ValueError(f"files must be {' and '.join(expected)}, not {', '.join(files)}")
    return _checked(adapted_model(base, adapter, **said))


def _base(name: str, bases: Models) -> CatalogModel:
    if name not in bases:
        raise ValueError(f"base must be a [[model]] in this catalog (of a variant, also an [[adapted]]), not {name!r}")
    return bases[name]


def adapted_model(base: CatalogModel, adapter: AdapterSource, **values: Any) -> CatalogModel:
    """Return the model that `base` becomes with `adapter`; `values` contains the fields that differ from the base's.

    Raises:
        TypeError: `values` has an unknown field.
        ValueError: `max_tokens` is larger than the base's.
    """
    if values["max_tokens"] > base.max_tokens:
        raise ValueError(f"max_tokens must be at most {base.max_tokens}, the limit of {base.name}")
    # Measurements on the base's vectors do not apply to the new vectors.
    measured: dict[str, Any] = {"calibrations": (), "bertscore": None}
    if values.get("kind") == "grader":
        measured["token_layers"] = ()
    return replace(base, default=False, adapter=adapter, **{**measured, **values})


def _without_calibrations(entry: Mapping[str, Any]) -> dict[str, Any]:
    # `_calibrations` reads them. Reading them again with the model would take as long as the rest of the catalog.
    return {name: value for name, value in entry.items() if name != "calibrations"}


def _calibrations(entry: Mapping[str, Any], directory: Path) -> tuple[StoredCalibration, ...]:
    entries = entry.get("calibrations", [])
    try:
        found = [_read_calibration(each, directory, entry.get("digest", "")) for each in entries]
    except ValueError as error:
        raise ValueError(f"calibrations: {error}") from error
    merged = merge(found, ())
    if len(merged) < len(found):
        raise ValueError("two calibrations have the same metric and parameters")
    return merged


def _read_calibration(entry: Mapping[str, Any], directory: Path, digest: str) -> StoredCalibration:
    values = {**entry, "model_digest": digest, "origin": "catalog"}
    if "fit_file" in values:
        path = directory / values.pop("fit_file")
        try:
            values["fit"] = path.read_text(encoding="utf-8")
        except OSError as error:
            raise ValueError(f"cannot read {path}: {error}") from error
    return read_calibration(values)


def _checked(model: CatalogModel) -> CatalogModel:
    if model.dims % model.heads:
        raise ValueError("dims must be a multiple of heads")
    if any(not 1 <= layer < model.layers for layer in model.token_layers):
        raise ValueError(f"token_layers must be between 1 and {model.layers - 1}")
    having = {*model.token_layers, model.layers}
    if model.bertscore and not {model.bertscore.layer, *model.bertscore.baselines} <= having:
        raise ValueError(f"bertscore has layers that are not outputs; use only {sorted(having)}")
    if not model.sources or not {"model.safetensors", "tokenizer.json"} <= set(model.files):
        raise ValueError("sources must not be empty, and files must pin model.safetensors and tokenizer.json")
    return model


@cache
def load_catalog(path: Path = _CATALOG_FILE) -> Mapping[str, CatalogModel]:
    """Return the catalog's models by name: base models in the file's order, then variants, then models with an adapter.

    Raises:
        CatalogError: The file is not readable; a field is missing or unknown, or has a wrong type; a name or digest is
            malformed; or there is not exactly one default.
    """
    raw = read_toml(path, "the model catalog")
    if not isinstance(raw.get("model"), list):
        raise CatalogError(f"{path} has no [[model]]")
    version, directory = raw.get("version"), path.parent

    def read(kind: str, reader: Callable[[dict[str, Any]], CatalogModel]) -> list[CatalogModel]:
        return [read_entry(entry, reader, path, kind) for entry in raw.get(kind, [])]

    own = read("model", lambda entry: read_model({**entry, "catalog_version": version}, directory))
    bases = by_name(own, path, "model")
    adapted = read("adapted", lambda entry: read_adapted(entry, bases, directory))
    whole = {**bases, **{model.name: model for model in adapted}}
    variants = read("variant", lambda entry: read_variant(entry, whole))
    known = by_name([*own, *variants, *adapted], path, "model")
    try:
        fitted = [with_compared_fits(model, known) for model in known.values()]
    except ValueError as error:
        raise CatalogError(f"{path}: {error}") from error
    return by_name(fitted, path, "model")


def default_model() -> CatalogModel:
    """Return the model that is used if the caller chooses no model."""
    return next(model for model in load_catalog().values() if model.default)


def find_model(name: str) -> CatalogModel:
    """Look a model up by name.

    Raises:
        CatalogError: The catalog has no such model.
    """
    return find(load_catalog(), name, "model")


def require_free_name(name: str, error: type[ModelError]) -> None:
    """Raise `error` if `name` is malformed or in the catalog."""
    if not re.fullmatch(NAME_PATTERN, name):
        raise error(f"{name!r} is no valid model name (use letters, digits, '.', '_', '-'). Choose a name with --name")
    if name in load_catalog():
        raise error(f"{name!r} is the name of a catalog model. Choose a different name with --name")


def base_models() -> list[CatalogModel]:
    """Return the encoders that are not variants, in the catalog's order."""
    return [model for model in load_catalog().values() if not model.base and model.kind == "encoder"]


def grader_models() -> list[CatalogModel]:
    """Return the graders that are not variants, in the catalog's order; the first is the default."""
    return [model for model in load_catalog().values() if not model.base and model.kind == "grader"]
