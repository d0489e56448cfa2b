"""Reads a table, as TOML or JSON gives it, into a dataclass by its types of fields. Light: standard library only."""

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from types import MappingProxyType, NoneType, UnionType
from typing import Any, Literal, Protocol, TypeVar, get_args, get_origin, get_type_hints

from gradewire_models.errors import CatalogError

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
"""Names of models and judges: they become directories."""
SHA256 = re.compile(r"[0-9a-f]{64}")

T = TypeVar("T")


class Entry(Protocol):
    """An entry of a catalog."""

    @property
    def name(self) -> str:
        """Its name, which no other entry has."""

    @property
    def default(self) -> bool:
        """Whether it is meant where none is named."""


EntryT = TypeVar("EntryT", bound=Entry)


def read_toml(path: Path, what: str) -> dict[str, Any]:
    """Reads a TOML file.

    Raises:
        CatalogError: It cannot be read; the message calls it `what`.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise CatalogError(f"cannot read {what} {path}: {error}") from error


def read_entry(entry: dict[str, Any], reader: Callable[[dict[str, Any]], T], path: Path, kind: str) -> T:
    """Reads one entry of the catalog `path` with `reader`.

    Raises:
        CatalogError: `reader` raised ValueError; the message says in which entry of which file.
    """
    try:
        return reader(entry)
    except ValueError as error:
        raise CatalogError(f"{path}: {kind} {entry.get('name')!r}: {error}") from error


def by_name(entries: Iterable[EntryT], path: Path, kind: str) -> Mapping[str, EntryT]:
    """The entries of the catalog `path` by name, in their order.

    Raises:
        CatalogError: Two have one name, or there is not exactly one default.
    """
    found: dict[str, EntryT] = {}
    for entry in entries:
        if entry.name in found:
            raise CatalogError(f"{path}: {kind} {entry.name!r} is listed twice")
        found[entry.name] = entry
    defaults = [entry.name for entry in found.values() if entry.default]
    if len(defaults) != 1:
        raise CatalogError(f"{path}: exactly one {kind} must be the default, found {defaults}")
    return MappingProxyType(found)


def find(entries: Mapping[str, EntryT], name: str, kind: str) -> EntryT:
    """Looks an entry up by name.

    Raises:
        CatalogError: There is none; the message lists those there are.
    """
    if name not in entries:
        raise CatalogError(f"the catalog has no {kind} {name!r}; it has: {', '.join(entries)}")
    return entries[name]


def check_keys(table: Mapping[str, Any], required: Iterable[str], optional: Iterable[str] = ()) -> None:
    """Checks that a table has every `required` key, and none but these and the `optional` ones.

    Raises:
        ValueError: It has others, or lacks one.
    """
    required = list(required)
    if unknown := sorted(set(table) - {*required, *optional}):
        raise ValueError(f"unknown {', '.join(unknown)}")
    for key in required:
        if key not in table:
            raise ValueError(f"{key} is missing")


def read_table(kind: type[T], table: Mapping[str, Any]) -> T:
    """Reads a table into the dataclass `kind`, field by field.

    A field of a dataclass is read from a table or is such a value already, a tuple from a list, a mapping from a table;
    a number with a fraction may be written without one. No other type is converted.

    Raises:
        ValueError: A field is missing, unknown or of a wrong type, or `kind` refuses the values. The message names the
            field, down to the entry of a list or a nested table.
    """
    known = fields(kind)  # type: ignore[arg-type] # a dataclass, as every caller's is
    optional = [each.name for each in known if each.default is not MISSING or each.default_factory is not MISSING]
    check_keys(table, [each.name for each in known if each.name not in optional], optional)
    types = get_type_hints(kind)
    return kind(**{name: _read(types[name], value, name) for name, value in table.items()})


def _read(kind: Any, value: Any, where: str) -> Any:
    origin, inner = get_origin(kind), get_args(kind)
    if origin is UnionType:
        return _read_union(inner, value, where)
    if isinstance(value, Mapping) and isinstance(kind, type) and is_dataclass(kind):
        try:
            return read_table(kind, value)
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from error
    if isinstance(value, Mapping) and origin is Mapping:
        names, kinds = inner
        return MappingProxyType(
            {_read_key(names, name, where): _read(kinds, each, f"{where}: {name}") for name, each in value.items()}
        )
    if isinstance(value, list | tuple) and origin is tuple:
        kinds = inner[:1] * len(value) if inner[1:] == (...,) else inner
        if len(kinds) == len(value):
            parts = enumerate(zip(kinds, value, strict=True), start=1)
            return tuple(_read(part, each, f"{where}: {number}") for number, (part, each) in parts)
    if value in inner if origin is Literal else origin is None and _has_type(value, kind):
        return value
    raise ValueError(f"{where} should be {_described(kind)}, not {value!r}")


def _read_union(kinds: tuple[Any, ...], value: Any, where: str) -> Any:
    if value is None and NoneType in kinds:
        return None
    kinds = tuple(kind for kind in kinds if kind is not NoneType)
    if len(kinds) == 1:
        return _read(kinds[0], value, where)
    for kind in kinds:
        try:
            return _read(kind, value, where)
        except ValueError:
            continue
    raise ValueError(f"{where} should be {' or '.join(map(_described, kinds))}, not {value!r}")


def _read_key(kind: Any, key: str, where: str) -> Any:
    if kind is int and key.isdecimal():
        return int(key)
    return _read(kind, key, f"a name in {where}")


def _has_type(value: object, kind: type) -> bool:
    if isinstance(value, bool):
        return kind is bool
    return isinstance(value, (int, float) if kind is float else kind)


def _described(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return f"one of {', '.join(get_args(kind))}"
    return str(kind) if get_origin(kind) else str(kind.__name__)
