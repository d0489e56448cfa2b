"""Who asks, as far as the server tells callers apart."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Caller:
    """A caller, who takes turns with the others.

    Attributes:
        key: What tells callers apart: the name of a token's tenant, else the host that a call comes from.
        weight: Its share of the turns beside those of others.
    """

    key: str = ""
    weight: float = 1.0


LOCAL: Final = Caller()
"""Whoever embeds the server in a process."""
