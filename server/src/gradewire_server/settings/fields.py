"""Fields of the groups that users can set, however deep a group stands."""

from collections.abc import Iterator
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Any, NamedTuple, get_args, get_type_hints

from gradewire_server.settings.setting import Setting


class SettingField(NamedTuple):
    """A group's field that users can set."""

    setting: Setting
    field: Field[Any]
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
    found: dict[str, SettingField] = {}
    late: list[SettingField] = []
    for each in _walk(group):
        if each.setting.after:
            late.append(each)
        else:
            found[each.setting.name] = each
    for each in late:
        names = list(found)
        place = names.index(each.setting.after) + 1
        items = list(found.items())
        found = dict([*items[:place], (each.setting.name, each), *items[place:]])
    return found


def _walk(group: type) -> Iterator[SettingField]:
    own = {each.field.name: each for each in setting_fields(group)}
    for name, hint in get_type_hints(group).items():
        if name in own:
            yield own[name]
        for part in (hint, *get_args(hint)):
            if isinstance(part, type) and is_dataclass(part):
                yield from _walk(part)
