"""A model that is another one's weights with an adapter merged in: ``[[adapted]]`` of the catalog. Light, as that."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from gradewire_models.catalog.adapters import ADAPTER_CONFIG, ADAPTER_WEIGHTS, AdapterSource, shipped_adapter
from gradewire_models.catalog.calibrations import read_calibrations
from gradewire_models.catalog.entries import CatalogModel

_OF_ADAPTER = ("base", "files", "text_form")
_REQUIRED = frozenset({"name", "title", "licence", "origin", "max_tokens", "digest"})
_OPTIONAL = frozenset({"calibrations"})


def read_adapted(entry: Mapping[str, Any], models: Mapping[str, CatalogModel], directory: Path) -> CatalogModel:
    """Reads an ``[[adapted]]``; the adapter's files lie in `gradewire_models.catalog.adapters` under the model's name.

    Args:
        entry: As TOML has it.
        models: The catalog's models by name.
        directory: Of the catalog's file.

    Raises:
        KeyError: A field is missing.
        TypeError: A field is of a wrong kind.
        ValueError: A field is unknown, or its value cannot be.
    """
    values = {name: value for name, value in entry.items() if name not in _OF_ADAPTER}
    base = models.get(entry["base"])
    if base is None or base.base or base.adapter:
        raise ValueError(f"base should be a model of its own of this catalog, not {entry['base']!r}")
    if unknown := set(values) - _REQUIRED - _OPTIONAL:
        raise ValueError(f"unknown {', '.join(sorted(unknown))}")
    for name in sorted(_REQUIRED - set(values)):
        raise KeyError(name)
    if set(entry["files"]) != {ADAPTER_WEIGHTS, ADAPTER_CONFIG}:
        raise ValueError(f"files should be {ADAPTER_WEIGHTS} and {ADAPTER_CONFIG}, not {', '.join(entry['files'])}")
    if not all(isinstance(value, str) for value in (*entry["files"].values(), entry["text_form"])):
        raise TypeError("files and text_form hold strings only")
    source = AdapterSource(
        base=base.name,
        directory=shipped_adapter(entry["name"]),
        files=MappingProxyType(dict(entry["files"])),
        text_form=entry["text_form"],
    )
    if "calibrations" in values:
        values["calibrations"] = read_calibrations(values["calibrations"], directory, entry["digest"])
    return adapted_model(base, source, **values)


def adapted_model(base: CatalogModel, adapter: AdapterSource, **values: Any) -> CatalogModel:
    """The model that `base` becomes with `adapter`.

    Args:
        base: A model of its own.
        adapter: What is merged in.
        values: Fields that are not the base's: name, title, licence, origin, max_tokens, digest, catalog_version …

    Raises:
        TypeError: `values` names no field.
        ValueError: The text may be longer than the base reads.
    """
    if not isinstance(values["max_tokens"], int) or values["max_tokens"] > base.max_tokens:
        raise ValueError(f"max_tokens should be at most {base.max_tokens}, as of {base.name}")
    # What was measured of the base's vectors says nothing of these.
    measured: dict[str, Any] = {"calibrations": (), "bertscore": None}
    return replace(base, default=False, adapter=adapter, **{**measured, **values})
