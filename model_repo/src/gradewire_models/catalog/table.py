"""Read TOML and JSON tables as checked dataclasses, and find a catalog's entries by name."""

import tomllib
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, Protocol, TypeVar

from pydantic import Field, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails, to_json

from gradewire_models.errors import CatalogError

NAME_PATTERN: Final = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"
_WORD: Final = r"^[^\W\d]\w*$"
_SHA256: Final = r"^[0-9a-f]{64}$"
_SHA256_OR_NONE: Final = r"^([0-9a-f]{64})?$"
_PATTERNS: Final = {
    NAME_PATTERN: "be a name of letters, digits, '.', '_' and '-'",
    _WORD: "be a name",
    _SHA256: "be 64 lower-case hex characters",
    _SHA256_OR_NONE: "be 64 lower-case hex characters, or empty",
}

Name = Annotated[str, Field(pattern=NAME_PATTERN)]
"""The name of a model or judge, and of its directory."""
Word = Annotated[str, Field(pattern=_WORD)]
Sha256 = Annotated[str, Field(pattern=_SHA256)]
Sha256OrNone = Annotated[str, Field(pattern=_SHA256_OR_NONE)]
"""A digest in hexadecimal, or "" if unknown."""
Count = Annotated[int, Field(ge=1)]
Finite = Annotated[float, Field(allow_inf_nan=False)]

_MISSING: Final = "missing"
_UNKNOWN: Final = "unexpected_keyword_argument"
_SHOWN_CHARACTERS: Final = 60

T = TypeVar("T")


class Entry(Protocol):
    """An entry of a catalog."""

    @property
    def name(self) -> str:
        """The entry's unique name."""

    @property
    def default(self) -> bool:
        """True for the entry that is used if the caller chooses no entry."""


EntryT = TypeVar("EntryT", bound=Entry)


def read_toml(path: Path, what: str) -> dict[str, Any]:
    """Read a TOML file.

    Raises:
        CatalogError: The file cannot be read. The message calls the file `what`.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise CatalogError(f"cannot read {what} {path}: {error}") from error


def read_entry(entry: dict[str, Any], reader: Callable[[dict[str, Any]], T], path: Path, kind: str) -> T:
    """Read an entry of the catalog `path` with `reader`.

    Raises:
        CatalogError: `reader` raised ValueError.
    """
    try:
        return reader(entry)
    except ValueError as error:
        raise CatalogError(f"{path}: {kind} {entry.get('name')!r}: {error}") from error


def by_name(entries: Iterable[EntryT], path: Path, kind: str) -> Mapping[str, EntryT]:
    """Return a catalog's entries by name, in the order of `entries`. Messages name `path`.

    Raises:
        CatalogError: Two entries have the same name, or the number of defaults is not one.
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
    """Look an entry up by name.

    Raises:
        CatalogError: The name is unknown.
    """
    if name not in entries:
        raise CatalogError(f"the catalog has no {kind} {name!r}. It has: {', '.join(entries)}")
    return entries[name]


class FieldError(ValueError):
    """Raised when a table's field is missing, unknown or invalid; an unknown field is reported first.

    Args:
        error: Pydantic's errors.
        table: Values that pydantic read; None if pydantic read JSON.

    Attributes:
        field: Dotted path of the field, for example ``"limits.min_cosine"``; "" for the table itself.
        said: Description of the error.
    """

    def __init__(self, error: ValidationError, table: Mapping[str, Any] | None) -> None:
        errors = error.errors()
        # A misspelt field is both unknown and missing, so report the unknown name.
        first = next((each for each in errors if each["type"] == _UNKNOWN), errors[0])
        self.field = _field(first, table)
        if first["type"] in {_MISSING, _UNKNOWN}:
            self.said = "is missing" if first["type"] == _MISSING else "is unknown"
        elif first["type"] in {"value_error", "json_invalid"}:
            self.said = first["msg"].removeprefix("Value error, ")
        else:
            wanted = [_wanted(each) for each in errors if _field(each, table) == self.field]
            self.said = f"must {' or '.join(wanted)}, not {first['input']!r:.{_SHOWN_CHARACTERS}}"
        super().__init__(f"{self.field} {self.said}".strip())


def read_table(kind: type[T], table: Mapping[str, Any], *, extra: Literal["forbid", "ignore"] = "forbid") -> T:
    """Read a table into the dataclass `kind`; pydantic checks the fields' types.

    The only conversions are lists to tuples, integers to floats, and unquoted TOML dates to strings. `extra` determines
    whether unknown fields are errors.

    Raises:
        FieldError: A field is missing, unknown, of a wrong type or out of range.
    """
    try:
        found: T = _adapter(kind).validate_json(to_json(table, inf_nan_mode="constants"), strict=True, extra=extra)
    except ValidationError as error:
        raise FieldError(error, table) from error
    return found


def read_json(kind: type[T], text: bytes) -> T:
    """Read a JSON object into the dataclass `kind`; ignore unknown fields.

    Raises:
        FieldError: The text is not a JSON object, a field is missing or has a wrong type or value, or a string contains
            a lone surrogate.
    """
    try:
        found: T = _adapter(kind).validate_json(text, strict=True, extra="ignore")
    except ValidationError as error:
        raise FieldError(error, None) from error
    return found


_adapter: Final[Callable[[Any], TypeAdapter[Any]]] = cache(TypeAdapter)


def _wanted(error: ErrorDetails) -> str:
    if error["type"] == "string_pattern_mismatch":
        return _PATTERNS[error["ctx"]["pattern"]]
    return error["msg"].partition(" should ")[2].partition(" after validation")[0]


def _field(error: ErrorDetails, table: Any) -> str:
    """Return the dotted path of an error in `table`, without the union member that pydantic adds."""
    if table is None:
        return ".".join(map(str, error["loc"]))
    found: list[str] = []
    for step in error["loc"]:
        try:
            table = table[step]
        except (KeyError, IndexError, TypeError):
            if error["type"] not in {_MISSING, _UNKNOWN}:
                break
        found.append(str(step))
    return ".".join(found)
