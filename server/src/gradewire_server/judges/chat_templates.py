"""How models mark the turns of a chat. Another kind of model is one more entry of TEMPLATES."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from gradewire_server.domain.judge import Role


@dataclass(frozen=True, slots=True)
class Markup:
    """A special token, by its name in the vocabulary; never made from a text that looks like it."""

    token: str


@dataclass(frozen=True, slots=True)
class ChatTemplate:
    """What stands around the texts of a chat: special tokens, and words of the template's own.

    Attributes:
        begin: Before everything.
        before: Before a turn's text, by its role.
        after: After a turn's text.
    """

    begin: tuple[Markup | str, ...]
    before: Mapping[Role, tuple[Markup | str, ...]]
    after: tuple[Markup | str, ...]


def _chatml() -> ChatTemplate:
    before = {role: (Markup("<|im_start|>"), f"{role.value}\n") for role in Role}
    return ChatTemplate((), MappingProxyType(before), (Markup("<|im_end|>"), "\n"))


TEMPLATES: Mapping[str, ChatTemplate] = MappingProxyType({"chatml": _chatml()})
"""Templates by the name that stands in a judge's description."""
