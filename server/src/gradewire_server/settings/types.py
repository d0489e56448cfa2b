"""Kinds of values that settings take, and how a field of a group becomes a setting."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BeforeValidator, ByteSize, ConfigDict, Field, GetCoreSchemaHandler
from pydantic_core import CoreSchema
from pydantic_settings import NoDecode

GROUP: Final = ConfigDict(hide_input_in_errors=True)
"""Of every group: what was given may hold a password."""


@dataclass(frozen=True, slots=True)
class Setting:
    """Stands in the annotation of a group's field. A field without it cannot be set by users.

    Attributes:
        name: Of the flag (``--redis-url``), the variable (``GRADEWIRE_REDIS_URL``) and the TOML key.
        help: One sentence.
        default: Makes the value of a server where nobody gives one, if that is not the field's own default. A field
            that has none is unset.
        after: Name of the setting that this one is listed behind; empty: in the order of the fields.
    """

    name: str
    help: str
    default: Callable[[], Any] | None = None
    after: str = ""


MIB: Final = 1 << 20
GIB: Final = 1 << 30
_TOKEN: Final = re.compile(r"[!-~]{1,1024}")
_OPEN_DOOR: Final = (
    "holds an empty token, which would leave the server open to anybody: give a token that is not blank, or "
    "leave the setting out"
)


class _ByteUnits:
    """Reads a number of bytes with its unit, as in "64MiB"."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        del source
        return handler.generate_schema(ByteSize)


class _Hidden:
    """Marks what is never shown."""


BYTE_UNITS: Final = _ByteUnits()
HIDDEN: Final = _Hidden()


def _split(value: Any) -> Any:
    return [part for part in re.split(r"[,\s]+", value) if part] if isinstance(value, str) else value


def _split_tokens(value: Any) -> Any:
    """As `_split`; a text must hold a token: a secret that turned out empty must not leave the server open."""
    found = _split(value)
    if isinstance(value, str) and not found:
        raise ValueError(_OPEN_DOOR)
    return found


def _check_tokens(tokens: tuple[str, ...]) -> tuple[str, ...]:
    if any(not token.strip() for token in tokens):
        raise ValueError(_OPEN_DOOR)
    if any(_TOKEN.fullmatch(token) is None for token in tokens):
        raise ValueError("a token is 1 to 1024 printable ASCII characters without blanks, which a header can carry")
    return tokens


def _blank_is_empty(value: Any) -> Any:
    return "" if isinstance(value, str) and not value.strip() else value


def _expand(path: Path | None) -> Path | None:
    return path.expanduser() if path else path


def blank_is_none(value: Any) -> Any:
    """An empty text switches an optional setting off."""
    return None if isinstance(value, str) and not value.strip() else value


EXPANDED: Final = AfterValidator(_expand)
"""On a group's path: a leading ~ is the user's home directory. Settings are shown as they were given."""

Names = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split)]
Secret = Annotated[str, BeforeValidator(_blank_is_empty), HIDDEN]
Tokens = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split_tokens), AfterValidator(_check_tokens), HIDDEN]
OptionalPath = Annotated[Path | None, BeforeValidator(blank_is_none)]
Directory = Annotated[Path, EXPANDED]
OptionalDirectory = Annotated[Path | None, BeforeValidator(blank_is_none), EXPANDED]
Bytes = Annotated[int, BYTE_UNITS, Field(ge=1)]
BytesOrAuto = Annotated[int, BYTE_UNITS, Field(ge=0)]
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
PositiveSeconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]
CountOrAuto = Annotated[int, Field(ge=0)]
Port = Annotated[int, Field(ge=0, le=65535)]
OptionalPort = Annotated[Port | None, BeforeValidator(blank_is_none)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
OptionalFinite = Annotated[Finite | None, BeforeValidator(blank_is_none)]
Share = Annotated[float, Field(gt=0, le=1)]
Price = Annotated[float, Field(ge=0, allow_inf_nan=False)]
OptionalPrice = Annotated[Price | None, BeforeValidator(blank_is_none)]
