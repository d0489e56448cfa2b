"""What gradewire can build: the models of ``catalog.toml`` as typed, checked values.

Light: standard library only, so a server can list what is missing without any of the packages that build models.
"""

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from gradewire_models.catalog.entries import Architecture, CatalogModel, Pooling, Source
from gradewire_models.catalog.reading import read_adapted, read_model, read_variant
from gradewire_models.catalog.table import by_name, find, read_entry, read_toml
from gradewire_models.errors import CatalogError

__all__ = [
    "Architecture",
    "CatalogModel",
    "Pooling",
    "Source",
    "base_models",
    "default_model",
    "find_model",
    "grader_models",
    "load_catalog",
]

_CATALOG_FILE = Path(__file__).with_name("catalog.toml")


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
    raw = read_toml(path, "the model catalog")
    if not isinstance(raw.get("model"), list):
        raise CatalogError(f"{path} has no [[model]]")
    version, directory = raw.get("version"), path.parent

    def read(kind: str, reader: Callable[[dict[str, Any]], CatalogModel]) -> list[CatalogModel]:
        return [read_entry(entry, reader, path, kind) for entry in raw.get(kind, [])]

    own = read("model", lambda entry: read_model({**entry, "catalog_version": version}, directory))
    bases = by_name(own, path, "model")
    variants = read("variant", lambda entry: read_variant(entry, bases))
    adapted = read("adapted", lambda entry: read_adapted(entry, bases, directory))
    return by_name([*own, *variants, *adapted], path, "model")


def default_model() -> CatalogModel:
    """The model that is meant where none is named."""
    return next(model for model in load_catalog().values() if model.default)


def find_model(name: str) -> CatalogModel:
    """Looks a model up by name.

    Raises:
        CatalogError: The catalog has no such model; the message lists those it has.
    """
    return find(load_catalog(), name, "model")


def base_models() -> list[CatalogModel]:
    """The encoders that are not variants of another, in the order of the catalog."""
    return [model for model in load_catalog().values() if not model.base and model.kind == "encoder"]


def grader_models() -> list[CatalogModel]:
    """The models that read question, reference and answer together, in the order of the catalog; the first is usual."""
    return [model for model in load_catalog().values() if model.kind == "grader"]
