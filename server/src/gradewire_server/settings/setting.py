"""How a field of a group becomes a setting: its name for users, and what they are told of it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from pydantic import ConfigDict

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
