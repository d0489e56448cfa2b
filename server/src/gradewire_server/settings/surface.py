"""The flat surface of the groups: one name for flag, variable and TOML key, however deep a field stands."""

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar, get_args

from pydantic import BeforeValidator, ValidationError, create_model
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict
from typing_extensions import override

from gradewire_server.settings.fields import SettingField, all_setting_fields, setting_fields
from gradewire_server.settings.types import EXPANDED, blank_is_none

ENV_PREFIX: Final = "GRADEWIRE_"

G = TypeVar("G")


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
