"""What gradewire can build: the models of ``catalog.toml`` as typed, checked values.

Light: standard library only, so a server can list what is missing without any of the packages that build models.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, get_args

from gradewire_models.catalog.adapted import read_adapted
from gradewire_models.catalog.calibrations import read_calibrations
from gradewire_models.catalog.entries import MODEL_NAME, Architecture, CatalogModel, Pooling, Source
from gradewire_models.catalog.facts import Bertscore
from gradewire_models.catalog.variants import read_limits, read_recipe
from gradewire_models.errors import CatalogError

__all__ = [
    "Architecture",
    "CatalogModel",
    "Pooling",
    "Source",
    "base_models",
    "default_model",
    "find_model",
    "load_catalog",
]

_CATALOG_FILE = Path(__file__).with_name("catalog.toml")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_BASELINE_VALUES = 3
_VARIANT_FIELDS = ("name", "base", "title", "numeric_class", "digest", "recipe", "limits")


@cache
def load_catalog(path: Path = _CATALOG_FILE) -> Mapping[str, CatalogModel]:
    """Reads the catalog.

    Args:
        path: A catalog in TOML; the one of this package unless a test says otherwise.

    Returns:
        The models by name, in the order of the file, then the variants, then those with an adapter.

    Raises:
        CatalogError: The file cannot be read, a field is missing, unknown or of a wrong kind, a name or digest is
            malformed, or there is not exactly one default.
    """
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise CatalogError(f"cannot read the model catalog {path}: {error}") from error
    entries = raw.get("model")
    if not isinstance(entries, list) or not entries:
        raise CatalogError(f"{path} has no [[model]]")
    models: dict[str, CatalogModel] = {}
    for entry in entries:
        model = _read_model({**entry, "catalog_version": raw.get("version")}, path)
        if model.name in models:
            raise CatalogError(f"{path}: model {model.name!r} is listed twice")
        models[model.name] = model
    for entry in raw.get("variant", []):
        variant = _read_variant(entry, models, path)
        if variant.name in models:
            raise CatalogError(f"{path}: model {variant.name!r} is listed twice")
        models[variant.name] = variant
    for entry in raw.get("adapted", []):
        adapted = _read_adapted(entry, models, path)
        if adapted.name in models:
            raise CatalogError(f"{path}: model {adapted.name!r} is listed twice")
        models[adapted.name] = adapted
    defaults = [model.name for model in models.values() if model.default]
    if len(defaults) != 1:
        raise CatalogError(f"{path}: exactly one model must be the default, found {defaults}")
    return MappingProxyType(models)


def default_model() -> CatalogModel:
    """The model that is meant where none is named."""
    return next(model for model in load_catalog().values() if model.default)


def find_model(name: str) -> CatalogModel:
    """Looks a model up by name.

    Raises:
        CatalogError: The catalog has no such model; the message lists those it has.
    """
    models = load_catalog()
    if name not in models:
        raise CatalogError(f"the catalog has no model {name!r}; it has: {', '.join(models)}")
    return models[name]


def base_models() -> list[CatalogModel]:
    """The models that are not variants of another, in the order of the catalog."""
    return [model for model in load_catalog().values() if not model.base]


def _read_variant(entry: dict[str, Any], models: Mapping[str, CatalogModel], path: Path) -> CatalogModel:
    where = f"{path}: variant {entry.get('name')!r}"
    base = models.get(entry.get("base", ""))
    if base is None or base.base:
        raise CatalogError(f"{where}: base should be a model of this catalog, not {entry.get('base')!r}")
    values = dict(entry)
    try:
        values["recipe"] = read_recipe(values["recipe"])
        if "limits" in values:
            values["limits"] = read_limits(values["limits"])
        # All else is the base's: another value there would be another model, not a variant.
        variant = replace(base, default=False, **{name: values.pop(name) for name in _VARIANT_FIELDS if name in values})
        if missing := [name for name in ("name", "title", "numeric_class", "digest") if name not in entry]:
            raise CatalogError(f"{where}: {missing[0]} is missing")
    except KeyError as error:
        raise CatalogError(f"{where}: {error.args[0]} is missing") from error
    except (TypeError, ValueError) as error:
        raise CatalogError(f"{where}: {error}") from error
    if values:
        raise CatalogError(f"{where}: unknown {', '.join(values)}")
    if variant.numeric_class == base.numeric_class:
        raise CatalogError(f"{where}: numeric_class is its base's, so caches would mix their vectors")
    _check_types(variant, where)
    _check_values(variant, where)
    return variant


def _read_adapted(entry: dict[str, Any], models: Mapping[str, CatalogModel], path: Path) -> CatalogModel:
    where = f"{path}: adapted {entry.get('name')!r}"
    try:
        model = read_adapted(entry, models, path.parent)
    except KeyError as error:
        raise CatalogError(f"{where}: {error.args[0]} is missing") from error
    except (AttributeError, TypeError, ValueError) as error:
        raise CatalogError(f"{where}: {error}") from error
    _check_types(model, where)
    _check_values(model, where)
    return model


def _read_model(entry: dict[str, Any], path: Path) -> CatalogModel:
    where = f"{path}: model {entry.get('name')!r}"
    values = dict(entry)
    try:
        values["sources"] = tuple(Source(**source) for source in values["sources"])
        values["files"] = MappingProxyType(dict(values["files"]))
        values["token_layers"] = tuple(values["token_layers"])
        if "calibrations" in values:
            values["calibrations"] = read_calibrations(values["calibrations"], path.parent, entry.get("digest", ""))
        if "bertscore" in values:
            values["bertscore"] = _read_bertscore(values["bertscore"])
        model = CatalogModel(**values)
    except KeyError as error:
        raise CatalogError(f"{where}: {error.args[0]} is missing") from error
    except (TypeError, ValueError) as error:
        raise CatalogError(f"{where}: {error}") from error
    _check_types(model, where)
    _check_values(model, where)
    return model


def _read_bertscore(entry: Mapping[str, Any]) -> Bertscore:
    values = dict(entry)
    baselines = {int(layer): tuple(map(float, each)) for layer, each in values.pop("baselines").items()}
    if any(len(each) != _BASELINE_VALUES for each in baselines.values()):
        raise ValueError("bertscore.baselines hold precision, recall and F1 of each layer")
    return Bertscore(**values, baselines=MappingProxyType(baselines))  # type: ignore[arg-type] # three each, as checked


def _check_types(model: CatalogModel, where: str) -> None:
    for field in fields(model):
        value = getattr(model, field.name)
        if isinstance(field.type, type) and not _has_type(value, field.type):
            raise CatalogError(f"{where}: {field.name} should be {field.type.__name__}, not {value!r}")
    strings = [getattr(source, field.name) for source in model.sources for field in fields(source)]
    if not all(isinstance(value, str) for value in (*strings, *model.files.values())):
        raise CatalogError(f"{where}: sources and files hold strings only")


def _has_type(value: object, expected: type) -> bool:
    if isinstance(value, bool):
        return expected is bool
    return isinstance(value, (int, float) if expected is float else expected)


def _check_values(model: CatalogModel, where: str) -> None:
    if not MODEL_NAME.fullmatch(model.name):
        raise CatalogError(f"{where}: a name is letters, digits, '.', '_' and '-'")
    if model.architecture not in get_args(Architecture) or model.pooling not in get_args(Pooling):
        raise CatalogError(f"{where}: unknown architecture {model.architecture!r} or pooling {model.pooling!r}")
    if min(model.dims, model.layers, model.heads, model.max_tokens) < 1 or model.dims % model.heads:
        raise CatalogError(f"{where}: dims, layers, heads and max_tokens are positive, dims a multiple of heads")
    if any(not 1 <= layer < model.layers for layer in model.token_layers):
        raise CatalogError(f"{where}: token_layers lie between 1 and {model.layers - 1}")
    having = {*model.token_layers, model.layers}
    if model.bertscore and not {model.bertscore.layer, *model.bertscore.baselines} <= having:
        raise CatalogError(f"{where}: bertscore speaks of layers that are no outputs; those are {sorted(having)}")
    pinned = [*model.files.values(), *(source.sha256 for source in model.sources)]
    if model.digest:
        pinned.append(model.digest)
    if model.adapter:
        pinned += model.adapter.files.values()
    if not all(_SHA256.fullmatch(value) for value in pinned):
        raise CatalogError(f"{where}: a SHA-256 is 64 lower-case hex characters")
    if not model.sources or not {"model.safetensors", "tokenizer.json"} <= set(model.files):
        raise CatalogError(f"{where}: sources, and files with model.safetensors and tokenizer.json, must be pinned")
