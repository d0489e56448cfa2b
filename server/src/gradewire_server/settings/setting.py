"""Declare settings, with their value types and their names in flags, variables and TOML; build groups from values."""

import ast
import inspect
import re
import sys
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, is_dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeVar, get_args, get_origin
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ByteSize,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    ValidationError,
    create_model,
)
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, ErrorDetails
from pydantic_settings import BaseSettings, InitSettingsSource, NoDecode, PydanticBaseSettingsSource, SettingsConfigDict
from typing_extensions import override

MIB: Final = 1 << 20
GIB: Final = 1 << 30
_TOKEN: Final = re.compile(r"[!-~]{1,1024}")
_BLANK_PROBLEM: Final = (
    "contains an empty token, which would leave the server open to anybody: set a token that is not blank, or "
    "leave the setting out"
)

ENV_PREFIX: Final = "GRADEWIRE_"
_PRICE_COUNT: Final = 2

G = TypeVar("G")

STARS: Final = "*****"

_MESSAGES: Final = {
    "tuple_type": "must be a list, or a string with commas between the items",
    "byte_size": "must be a size, such as 64MiB or 2GB",
    "byte_size_unit": "has an unknown unit: use B, KiB, MiB, GiB, KB, MB or GB",
    "int_parsing": "must be a whole number",
    "float_parsing": "must be a number",
    "bool_parsing": "must be true or false",
}
"""Messages for pydantic's error types whose own messages do not help users."""

_KINDS: Final[dict[Any, str]] = {bool: "boolean", int: "integer", float: "number", Path: "path", str: "text"}


@dataclass(frozen=True, slots=True)
class Setting:
    """A mark in a field's annotation that lets users set the field.

    The first paragraph of the field's docstring is the help. The second paragraph says when to change the setting.

    Attributes:
        name: The TOML key (``redis_url``). The flag (``--redis-url``) and the variable are derived from it.
        default: A function that returns the default. Without this function, the field's own default applies, and a
            field without a default is unset.
        everyday: True if `serve --help` shows the setting. `serve --help-all` shows every setting.
    """

    name: str
    default: Callable[[], Any] | None = None
    everyday: bool = False


def group(section: str) -> ConfigDict:
    """Return the pydantic configuration for a group that has this title in `serve --help`.

    Error messages show no input because it may contain a password.
    """
    return ConfigDict(hide_input_in_errors=True, title=section)


class _ByteUnits:
    """A mark for sizes that may have a unit, such as "64MiB"."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        del source
        return handler.generate_schema(ByteSize)


class _Hidden:
    """A mark for secrets, which are never shown."""


BYTE_UNITS: Final = _ByteUnits()
HIDDEN: Final = _Hidden()


def _split(value: Any) -> Any:
    return [part for part in re.split(r"[,\s]+", value) if part] if isinstance(value, str) else value


def _split_tokens(value: Any) -> Any:
    """Split like `_split`, but raise ValueError for a blank string, so that no empty token leaves the server open."""
    found = _split(value)
    if isinstance(value, str) and not found:
        raise ValueError(_BLANK_PROBLEM)
    return found


def _split_prices(value: Any) -> Any:
    """Split like `_split`, and return None for a blank string."""
    found = _split(blank_is_none(value))
    if isinstance(found, list | tuple) and len(found) != _PRICE_COUNT:
        raise ValueError("must be two prices with a comma between them, such as 0.15,0.60")
    return found


def _check_tokens(tokens: tuple[str, ...]) -> tuple[str, ...]:
    if any(not token.strip() for token in tokens):
        raise ValueError(_BLANK_PROBLEM)
    if any(_TOKEN.fullmatch(token) is None for token in tokens):
        raise ValueError("a token must be 1 to 1024 printable ASCII characters without spaces, to fit in a header")
    return tokens


def _blank_is_empty(value: Any) -> Any:
    return "" if isinstance(value, str) and not value.strip() else value


def _expand(path: Path | None) -> Path | None:
    return path.expanduser() if path else path


def blank_is_none(value: Any) -> Any:
    """Return None for a blank string, so that a blank value switches an optional setting off."""
    return None if isinstance(value, str) and not value.strip() else value


EXPANDED: Final = AfterValidator(_expand)
"""Mark for a path whose leading ~ means the user's home directory. `--print-settings` shows the unexpanded path."""

Names = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split)]
Secret = Annotated[str, BeforeValidator(_blank_is_empty), HIDDEN]
Tokens = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split_tokens), AfterValidator(_check_tokens), HIDDEN]
OptionalPath = Annotated[Path | None, BeforeValidator(blank_is_none)]
Directory = Annotated[Path, EXPANDED]
OptionalDirectory = Annotated[Path | None, BeforeValidator(blank_is_none), EXPANDED]
Bytes = Annotated[int, BYTE_UNITS, Field(ge=1)]
BytesOrAuto = Annotated[int, BYTE_UNITS, Field(ge=0)]
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
OptionalSeconds = Annotated[Seconds | None, BeforeValidator(blank_is_none)]
PositiveSeconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]
OptionalCount = Annotated[Count | None, BeforeValidator(blank_is_none)]
CountOrAuto = Annotated[int, Field(ge=0)]
Port = Annotated[int, Field(ge=0, le=65535)]
OptionalPort = Annotated[Port | None, BeforeValidator(blank_is_none)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
OptionalFinite = Annotated[Finite | None, BeforeValidator(blank_is_none)]
Share = Annotated[float, Field(gt=0, le=1)]
AccessPoints = Annotated[tuple[Literal["health", "metrics"], ...], NoDecode, BeforeValidator(_split)]
Price = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Prices = Annotated[tuple[Price, Price] | None, NoDecode, BeforeValidator(_split_prices)]


class SettingField(NamedTuple):
    """A field that users can set, with its names and help."""

    setting: Setting
    field: FieldInfo
    group: type
    attribute: str

    @property
    def name(self) -> str:
        """The Python and TOML name, for example ``redis_url``."""
        return self.setting.name

    @property
    def flag(self) -> str:
        """The flag, for example ``--redis-url``."""
        return f"--{self.name.replace('_', '-')}"

    @property
    def variable(self) -> str:
        """The environment variable, for example ``GRADEWIRE_REDIS_URL``."""
        return f"{ENV_PREFIX}{self.name.upper()}"

    @property
    def help(self) -> str:
        """The option's help."""
        return self._paragraphs[0]

    @property
    def when(self) -> str:
        """Advice on when to change the setting."""
        return self._paragraphs[1]

    @property
    def _paragraphs(self) -> list[str]:
        text = _docstrings(self.group.__module__)[self.group.__name__, self.attribute]
        return [" ".join(each.split()) for each in text.split("\n\n")]

    @property
    def section(self) -> str:
        """The group's title in `serve --help`."""
        config: ConfigDict = self.group.__pydantic_config__  # type: ignore[attr-defined]
        return str(config["title"])

    @property
    def everyday(self) -> bool:
        """True if `serve --help` shows the setting."""
        return self.setting.everyday

    @property
    def secret(self) -> bool:
        """True if the value must never be shown in plain text."""
        return HIDDEN in self.field.metadata

    @property
    def kind(self) -> str:
        """The value type: text, path, integer, number, bytes (as in ``64MiB``), boolean, list (with commas) or choice.

        `Settings.load` also accepts a string for every type.
        """
        return "bytes" if BYTE_UNITS in self.field.metadata else _kind_of(self.field.annotation)

    @property
    def choices(self) -> tuple[str, ...]:
        """The possible values of a ``choice``; empty for other value types."""
        return get_args(self.field.annotation) if self.kind == "choice" else ()

    @property
    def default(self) -> str:
        """The default as text, or "" if there is no default."""
        value, kind = self.default_value(), self.kind
        if kind == "bytes":
            return ByteSize(value).human_readable()
        if kind == "list":
            return ",".join(value or ())
        text = "" if value is None else str(value)
        return text.lower() if kind == "boolean" else text

    def default_value(self) -> Any:
        """Return the default. If a required field has no default, return None, which switches its group off."""
        if self.setting.default is not None:
            return self.setting.default()
        return None if self.field.is_required() else self.field.default

    def flat_kind(self) -> Any:
        """Return the field's type in the flat model, where required fields may be unset and paths are not expanded."""
        kind, marks = self.field.annotation, [mark for mark in self.field.metadata if mark is not EXPANDED]
        if self.field.is_required():
            kind, marks = kind | None, [BeforeValidator(blank_is_none), *marks]  # type: ignore[operator,assignment]
        return Annotated[(kind, *marks)]


def _kind_of(annotation: Any) -> str:
    origin = get_origin(annotation)
    if origin is Literal:
        return "choice"
    if origin is tuple:
        return "list"
    return _KINDS[annotation] if origin is None else _kind_of(get_args(annotation)[0])


@cache
def _docstrings(module: str) -> dict[tuple[str, str], str]:
    """Return fields' docstrings by group and name. Pydantic would parse them at every import, not only for help."""
    found = {}
    for group in ast.parse(inspect.getsource(sys.modules[module])).body:
        if isinstance(group, ast.ClassDef):
            for field, text in pairwise(group.body):
                if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr):
                    found[group.name, ast.unparse(field.target)] = str(ast.literal_eval(text.value))
    return found


def setting_fields(group: Any) -> dict[str, SettingField]:
    """Return the fields that users can set, by field name, without those of inner groups."""
    return {
        name: SettingField(mark, field, group, name)
        for name, field in group.__pydantic_fields__.items()
        for mark in field.metadata
        if isinstance(mark, Setting)
    }


def _groups(group: Any) -> dict[str, Any]:
    """Return the inner groups of a group, by field name."""
    return {
        name: part
        for name, field in group.__pydantic_fields__.items()
        for part in (field.annotation, *get_args(field.annotation))
        if is_dataclass(part)
    }


def all_setting_fields(group: Any) -> dict[str, SettingField]:
    """Return the fields of a group and its inner groups, by setting name, in documentation order."""
    return {each.name: each for each in _walk(group)}


def _walk(group: Any) -> Iterator[SettingField]:
    own, inner = setting_fields(group), _groups(group)
    for name in group.__pydantic_fields__:
        if name in own:
            yield own[name]
        elif name in inner:
            yield from _walk(inner[name])


class SettingsError(ValueError):
    """Raised when a setting is unknown or its value is invalid. The message names the setting and shows no secret."""


class _Flat(BaseSettings):
    """The base class of a model that reads flags, variables and the file. `_flat_model` adds the groups' fields."""

    model_config = SettingsConfigDict(
        env_prefix=ENV_PREFIX, extra="forbid", frozen=True, hide_input_in_errors=True, env_ignore_empty=False
    )

    @override
    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        path = blank_is_none((env_settings() | init_settings()).get("config"))
        values = {} if path is None else _read_toml(path, known=settings_cls.model_fields.keys() - {"config"})
        return init_settings, env_settings, InitSettingsSource(settings_cls, values)


def _read_toml(path: str | Path, *, known: Collection[str]) -> dict[str, Any]:
    """Return the values in a settings file; raise SettingsError if it is unreadable or has an unknown key."""
    try:
        values = tomllib.loads(Path(path).expanduser().read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SettingsError(f"config: cannot read {path}: {error}") from error
    if unknown := sorted(values.keys() - known):
        raise SettingsError(f"config: {path} has unknown keys: {', '.join(unknown)}")
    return values


def read_values(group: type, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of all settings in a group and its inner groups, by name. Ignore None in `given`.

    Raises:
        SettingsError: A value is invalid. The message, one line, names the settings.
    """
    try:
        return dict(_flat_model(group)(**{name: value for name, value in given.items() if value is not None}))
    except ValidationError as error:
        raise SettingsError("; ".join(map(_explain, error.errors()))) from None


@cache
def _flat_model(group: type) -> type[_Flat]:
    found = {
        name: (each.flat_kind(), FieldInfo(default_factory=each.default_value))
        for name, each in all_setting_fields(group).items()
    }
    return create_model("Settings", __base__=_Flat, **found)  # type: ignore[call-overload,no-any-return]


def make_group(kind: type[G], values: Mapping[str, Any], *, without: Collection[type] = (), **others: Any) -> G:
    """Make a group and its inner groups.

    The keys of `values` are names of settings. `others` contains the fields that are not settings.

    An inner group stays unset if it is in `without` or if one of its required values is None.

    Raises:
        SettingsError: The values contradict each other.
    """
    arguments = {name: values[each.name] for name, each in setting_fields(kind).items()} | others
    for name, inner in _groups(kind).items():
        needed = [each.name for each in setting_fields(inner).values() if each.field.is_required()]
        if inner not in without and all(values[each] is not None for each in needed):
            arguments[name] = make_group(inner, values, without=without)
    try:
        return kind(**arguments)
    except ValidationError as error:
        raise SettingsError(error.errors()[0]["msg"].removeprefix("Value error, ")) from None


def _explain(error: ErrorDetails) -> str:
    name = ".".join(map(str, error["loc"][:1]))
    if error["type"] == "extra_forbidden":
        return f"{name}: unknown setting"
    message = _MESSAGES.get(error["type"]) or error["msg"].removeprefix("Value error, ").removeprefix(f"{name} ")
    return f"{name}: {message} (flag --{name.replace('_', '-')}, variable {ENV_PREFIX}{name.upper()})"


def printable(value: Any, *, secret: bool) -> Any:
    """Return a setting's value as a TOML value, with stars for secrets and for passwords in URLs."""
    if value is None or value == "":
        return ""
    if isinstance(value, tuple):
        return [STARS] * len(value) if secret else list(value)
    if secret or "://" in str(value):
        return mask_url(str(value))
    return value if isinstance(value, bool | int | float) else str(value)


def mask_url(url: str) -> str:
    """Return a URL with stars for its password, or only stars if the string does not look like a URL."""
    try:
        parts = urlsplit(url)
        password = parts.password
    except ValueError:
        return STARS
    if not parts.scheme or "://" not in url:
        return STARS
    if password is None and "@" not in parts.netloc:
        return url if "password" not in parts.query else f"{parts.scheme}://{STARS}"
    _, _, address = parts.netloc.rpartition("@")
    return parts._replace(netloc=f"{parts.username or ''}:{STARS}@{address}").geturl()
