"""Settings for people: what each is called, what it takes, and how it is shown without its secrets."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, get_args, get_origin
from urllib.parse import urlsplit

from pydantic import ByteSize

from gradewire_server.settings.fields import SettingField
from gradewire_server.settings.surface import ENV_PREFIX
from gradewire_server.settings.types import BYTE_UNITS, HIDDEN, Finite, Port, Price

STARS: Final = "*****"


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


_KINDS: Final[dict[Any, str]] = {bool: "boolean", int: "integer", float: "number", str: "text"}


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


def shown(value: Any, *, secret: bool) -> Any:
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
