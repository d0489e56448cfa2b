"""Chat templates, and functions that make prompts harmless and cut predictions."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, Generic, TypeVar

from gradewire_server.domain.judge import JudgePrompt, Role, Turn

T = TypeVar("T")


class Same(Generic[T]):
    """An object as a key of a cache, equal only to itself.

    A prompt's fixed turns are one object for many items, and comparing their texts would cost more than it saves.
    """

    __slots__ = ("it",)

    def __init__(self, it: T) -> None:
        self.it = it

    def __hash__(self) -> int:
        return id(self.it)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and other.it is self.it


@dataclass(frozen=True, slots=True)
class Markup:
    """A special token, by its name in the vocabulary. Strings that look the same are not special tokens."""

    token: str


@dataclass(frozen=True, slots=True)
class ChatTemplate:
    """The markup around a chat's texts: special tokens and fixed words."""

    begin: tuple[Markup | str, ...]
    before: Mapping[Role, tuple[Markup | str, ...]]
    after: tuple[Markup | str, ...]


_CHATML: Final = ChatTemplate(
    begin=(),
    before={role: (Markup("<|im_start|>"), f"{role.value}\n") for role in Role},
    after=(Markup("<|im_end|>"), "\n"),
)
TEMPLATES: Final[Mapping[str, ChatTemplate]] = {"chatml": _CHATML}
# A server renders its chat template to one string before it parses special tokens, so a special token in a user's text
# would become markup. These tokens are from model families that are common on servers.
_SPECIAL_TOKEN: Final = re.compile(
    r"<(?=\|)|<(?=/?(?:s|unk|pad|bos|eos|mask|start_of_turn|end_of_turn|think|tool_call|tool_response|repo_name)>)"
    r"|\[(?=\||/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS)\])",
    re.IGNORECASE,
)


def first_stop(text: str, stops: Sequence[str]) -> int | None:
    """Return the first stop's position in the text, or None if the text contains no stop. Ignore empty stops."""
    return min((at for at in (text.find(stop) for stop in stops if stop) if at >= 0), default=None)


def harmless(text: str) -> str:
    """Insert a space into everything that looks like a chat token, for example "< |im_end|>".

    Lone surrogates, which cannot be sent, become "?". A second call changes nothing.
    """
    return _SPECIAL_TOKEN.sub(lambda found: found[0] + " ", text.encode("utf-8", "replace").decode())


def turns(prompt: JudgePrompt) -> tuple[Turn, ...]:
    """Return a prompt's turns with harmless texts. The item's turn is last.

    The item's pieces are joined first, so that no chat token can form across two pieces.
    """
    item = Turn(Role.USER, harmless(prompt.lead + prompt.prediction + prompt.tail))
    return (*_harmless_turns(Same(prompt.fixed)), item)


@lru_cache(maxsize=64)
def _harmless_turns(fixed: Same[tuple[Turn, ...]]) -> tuple[Turn, ...]:
    return tuple(Turn(turn.role, harmless(turn.text)) for turn in fixed.it)


def characters(prompt: JudgePrompt) -> int:
    """Return the total number of characters in a prompt."""
    own = len(prompt.lead) + len(prompt.prediction) + len(prompt.tail) + len(prompt.opening)
    return _characters_of_turns(Same(prompt.fixed)) + own


@lru_cache(maxsize=64)
def _characters_of_turns(fixed: Same[tuple[Turn, ...]]) -> int:
    return sum(len(turn.text) for turn in fixed.it)


def fitted(prompt: JudgePrompt, max_characters: int) -> JudgePrompt | None:
    """Return a prompt of at most `max_characters`, with the prediction cut at the end if necessary.

    If nothing of the prediction would be left, return None.
    """
    excess = characters(prompt) - max_characters
    if excess <= 0:
        return prompt
    if excess >= len(prompt.prediction):
        return None
    return replace(prompt, prediction=prompt.prediction[:-excess])


def halved(prompt: JudgePrompt) -> JudgePrompt | None:
    """Return a prompt with the first half of its prediction, or None if nothing of the prediction would be left."""
    half = len(prompt.prediction) // 2
    return replace(prompt, prediction=prompt.prediction[:half]) if half else None
