"""Settings for people: what each is called, what it takes, and how it is shown without its secrets."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, get_args, get_origin
from urllib.parse import urlsplit

from pydantic import ByteSize, SecretStr
from pydantic.fields import FieldInfo

ENV_PREFIX: Final = "GRADEWIRE_"
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


_KINDS: Final[dict[Any, str]] = {bool: "boolean", int: "integer", float: "number", str: "text", ByteSize: "bytes"}


def setting_info(name: str, field: FieldInfo) -> SettingInfo:
    """Describes one field of Settings."""
    annotation = field.annotation
    choices: tuple[str, ...] = ()
    kind = _KINDS.get(annotation, "text")
    if get_origin(annotation) is Literal:
        kind, choices = "choice", get_args(annotation)
    elif get_origin(annotation) is tuple:
        kind = "list"
    elif Path in get_args(annotation):
        kind = "path"
    default = field.get_default(call_default_factory=True)
    return SettingInfo(
        name=name,
        flag=f"--{name.replace('_', '-')}",
        variable=f"{ENV_PREFIX}{name.upper()}",
        kind=kind,
        default=_default_text(default),
        help=field.description or "",
        secret="SecretStr" in repr(annotation),
        choices=choices,
    )


def _default_text(default: Any) -> str:
    if isinstance(default, ByteSize):
        return default.human_readable()
    if isinstance(default, tuple):
        return ",".join(default)
    if isinstance(default, bool):
        return str(default).lower()
    return "" if default is None else str(default)


def plain(value: Any) -> Any:
    """A setting's value as TOML can hold it, secrets as stars."""
    if value is None:
        return ""
    if isinstance(value, SecretStr):
        secret = value.get_secret_value()
        return mask_url(secret) if "://" in secret else STARS
    if isinstance(value, tuple):
        return [STARS if isinstance(part, SecretStr) else part for part in value]
    return value if isinstance(value, (bool, int, float)) else str(value)


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
