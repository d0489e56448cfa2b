"""Kinds of values, and one flat name for flag, variable and TOML key of every setting, however deep it stands."""

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from dataclasses import Field as DataclassField
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeVar, get_args, get_origin, get_type_hints
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
from pydantic_settings import BaseSettings, NoDecode, PydanticBaseSettingsSource, SettingsConfigDict
from typing_extensions import override

GROUP: Final = ConfigDict(hide_input_in_errors=True)
"""Of every group: what was given may hold a password."""

MIB: Final = 1 << 20
GIB: Final = 1 << 30
_TOKEN: Final = re.compile(r"[!-~]{1,1024}")
_BLANK_PROBLEM: Final = (
    "holds an empty token, which would leave the server open to anybody: give a token that is not blank, or "
    "leave the setting out"
)

ENV_PREFIX: Final = "GRADEWIRE_"

G = TypeVar("G")

STARS: Final = "*****"

_KINDS: Final[dict[Any, str]] = {bool: "boolean", int: "integer", float: "number", str: "text"}


@dataclass(frozen=True, slots=True)
class Setting:
    """Stands in the annotation of a group's field. A field without it cannot be set by users.

    Attributes:
        name: Of the flag (``--redis-url``), the variable (``GRADEWIRE_REDIS_URL``) and the TOML key.
        help: One sentence.
        default: Makes the value of a server where nobody gives one, if that is not the field's own default. A field
            that has none is unset.
    """

    name: str
    help: str
    default: Callable[[], Any] | None = None


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
        raise ValueError(_BLANK_PROBLEM)
    return found


def _check_tokens(tokens: tuple[str, ...]) -> tuple[str, ...]:
    if any(not token.strip() for token in tokens):
        raise ValueError(_BLANK_PROBLEM)
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


class SettingField(NamedTuple):
    """A group's field that users can set."""

    setting: Setting
    field: DataclassField[Any]
    kind: Any
    """Its type, with what marks and bounds it."""

    @property
    def required(self) -> bool:
        """Whether the group cannot do without; on the surface it is unset then, which switches the group off."""
        return self.field.default is MISSING and self.field.default_factory is MISSING

    def default(self) -> Any:
        """The value where nobody gives one."""
        if self.setting.default is not None:
            return self.setting.default()
        return None if self.required else self.field.default


def setting_fields(group: type) -> Iterator[SettingField]:
    """A group's own fields that users can set."""
    hints = get_type_hints(group, include_extras=True)
    for field in fields(group):
        for part in get_args(hints[field.name]):
            if isinstance(part, Setting):
                yield SettingField(part, field, hints[field.name])


def all_setting_fields(group: type) -> dict[str, SettingField]:
    """Of a group and those inside it, by the setting's name, in the order in which they are listed."""
    return {each.setting.name: each for each in _walk(group)}


def _walk(group: type) -> Iterator[SettingField]:
    own = {each.field.name: each for each in setting_fields(group)}
    for name, hint in get_type_hints(group).items():
        if name in own:
            yield own[name]
        for part in (hint, *get_args(hint)):
            if isinstance(part, type) and is_dataclass(part):
                yield from _walk(part)


class SettingsError(ValueError):
    """A setting is unknown or has a value that cannot be used; the message names it, and shows no secret."""


class _Flat(BaseSettings):
    """Reads flags, variables and the file; its fields follow from the groups."""

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
        del dotenv_settings, file_secret_settings
        return init_settings, env_settings, _TomlSource(settings_cls)


class _TomlSource(PydanticBaseSettingsSource):
    """The file that the flag or variable `config` names; an unknown key in it is an error that lists the file."""

    @override
    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        del field
        return self().get(field_name), field_name, False

    @override
    def __call__(self) -> dict[str, Any]:
        path = blank_is_none(self.current_state.get("config"))
        if path is None:
            return {}
        try:
            values = tomllib.loads(Path(path).expanduser().read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise SettingsError(f"config: cannot read {path}: {error}") from error
        unknown = values.keys() - (self.settings_cls.model_fields.keys() - {"config"})
        if unknown:
            raise SettingsError(f"config: {path} has unknown keys: {', '.join(sorted(unknown))}")
        return values


def read_values(group: type, given: Mapping[str, Any]) -> dict[str, Any]:
    """Values of all settings of a group and of those inside it, by name.

    Args:
        group: Whose fields are set.
        given: As flags, as text or typed; None: not given.

    Raises:
        SettingsError: One line that names the settings.
    """
    try:
        flat = _flat_model(group)(**{name: value for name, value in given.items() if value is not None})
    except ValidationError as error:
        raise SettingsError("; ".join(map(_explain, error.errors()))) from None
    return {name: getattr(flat, name) for name in type(flat).model_fields}


@cache
def _flat_model(group: type) -> type[_Flat]:
    found = {
        name: (_flat_kind(each), FieldInfo(default_factory=each.default))
        for name, each in all_setting_fields(group).items()
    }
    return create_model("Settings", __base__=_Flat, **found)  # type: ignore[call-overload,no-any-return]


def _flat_kind(each: SettingField) -> Any:
    kind, *marks = get_args(each.kind)
    if each.required:
        kind, marks = kind | None, [BeforeValidator(blank_is_none), *marks]
    return Annotated[(kind, *(mark for mark in marks if mark is not EXPANDED))]


class Values:
    """Values by the name of their setting, and the groups that are made of them."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def group(self, kind: type[G], **others: Any) -> G:
        """A group of its own settings.

        Args:
            kind: Its class.
            others: Fields that are given otherwise: groups inside it, and what stands for unset ones.

        Raises:
            SettingsError: What the group says of values that do not go together.
        """
        own = {each.field.name: self._values[each.setting.name] for each in setting_fields(kind)}
        try:
            return kind(**(own | others))
        except ValidationError as error:
            raise SettingsError(error.errors()[0]["msg"].removeprefix("Value error, ")) from None


def _explain(error: ErrorDetails) -> str:
    name = ".".join(map(str, error["loc"][:1]))
    message = error["msg"].removeprefix("Value error, ")
    if error["type"] == "extra_forbidden":
        return f"{name}: there is no such setting"
    return f"{name}: {message} (flag --{name.replace('_', '-')}, variable {ENV_PREFIX}{name.upper()})"


@dataclass(frozen=True, slots=True)
class SettingInfo:
    """One setting, for whoever makes command line flags or documentation of them.

    Attributes:
        name: Python and TOML name, e.g. ``redis_url``.
        flag: ``--redis-url``.
        variable: ``GRADEWIRE_REDIS_URL``.
        kind: ``text``, ``path``, ``integer``, ``number``, ``bytes`` (``64MiB`` is understood), ``boolean``, ``list``
            (comma-separated) or ``choice``. Values of any kind may be given to `Settings.load` as text.
        default: As text; empty where there is none.
        help: One sentence.
        secret: Never to be shown in the clear.
        choices: For kind ``choice``.
    """

    name: str
    flag: str
    variable: str
    kind: str
    default: str
    help: str
    secret: bool
    choices: tuple[str, ...] = ()


def setting_info(each: SettingField) -> SettingInfo:
    """Describes one setting."""
    name = each.setting.name
    base, *marks = get_args(each.kind)
    choices: tuple[str, ...] = ()
    kind = _KINDS.get(base, "text")
    if get_origin(base) is Literal:
        kind, choices = "choice", get_args(base)
    elif get_origin(base) is tuple:
        kind = "list"
    elif Path in {base, *get_args(base)}:
        kind = "path"
    elif {Finite, Price} & set(get_args(base)):
        kind = "number"
    elif Port in get_args(base):
        kind = "integer"
    elif BYTE_UNITS in marks:
        kind = "bytes"
    return SettingInfo(
        name=name,
        flag=f"--{name.replace('_', '-')}",
        variable=f"{ENV_PREFIX}{name.upper()}",
        kind=kind,
        default=_default_text(each.default(), kind),
        help=each.setting.help,
        secret=HIDDEN in marks,
        choices=choices,
    )


def _default_text(default: Any, kind: str) -> str:
    if kind == "bytes":
        return ByteSize(default).human_readable()
    if kind == "list":
        return ",".join(default)
    if kind == "boolean":
        return str(default).lower()
    return "" if default is None else str(default)


def printable(value: Any, *, secret: bool) -> Any:
    """A setting's value as TOML can hold it, secrets as stars."""
    if not value and not isinstance(value, (bool, int, float, tuple)):
        return ""
    if secret:
        return [STARS] * len(value) if isinstance(value, tuple) else _masked(value)
    if isinstance(value, tuple):
        return list(value)
    return value if isinstance(value, (bool, int, float)) else str(value)


def _masked(secret: str) -> str:
    return mask_url(secret) if "://" in secret else STARS


def mask_url(url: str) -> str:
    """The URL with its password as stars; whatever does not look like a URL is all stars."""
    try:
        parts = urlsplit(url)
        password = parts.password
    except ValueError:
        return STARS
    if not parts.scheme:
        return STARS
    if password is None and "@" not in parts.netloc:
        return url if "password" not in parts.query else f"{parts.scheme}://{STARS}"
    _, _, address = parts.netloc.rpartition("@")
    return parts._replace(netloc=f"{parts.username or ''}:{STARS}@{address}").geturl()
