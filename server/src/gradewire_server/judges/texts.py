"""Texts to and from judges: chat markup by kind of model, the end of a text, and prompts made harmless and cut."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from gradewire_server.domain.judge import JudgePrompt, Role, Turn


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


def first_stop(text: str, stops: Sequence[str]) -> int | None:
    """Where the first of these texts begins, empty ones left out; None where none is in it."""
    return min((at for at in (text.find(stop) for stop in stops if stop) if at >= 0), default=None)


class TextEnd:
    """Finds the end of one answer.

    Args:
        text: Token ids to text.
        ends: Tokens that end the judge's turn.
        stop: Texts that end the answer.
    """

    def __init__(self, text: Callable[[Sequence[int]], str], ends: frozenset[int], stop: Sequence[str]) -> None:
        self._text = text
        self._ends = ends
        self._stop = [each for each in stop if each]
        # A character takes at most four tokens, one byte each: so many hold the longest stop and the token before it.
        self._tail = 4 * max(map(len, self._stop), default=0) + 4

    def reached(self, ids: Sequence[int]) -> bool:
        """Whether the last of these tokens ends the answer; asked after each one."""
        if not ids:
            return False
        if ids[-1] in self._ends:
            return True
        return bool(self._stop) and first_stop(self._text(ids[-self._tail :]), self._stop) is not None

    def read(self, ids: Sequence[int]) -> tuple[str, bool]:
        """The answer without what ended it, stripped; and whether anything ended it."""
        ended = bool(ids) and ids[-1] in self._ends
        text = self._text(ids[:-1] if ended else ids)
        at = first_stop(text, self._stop)
        if at is not None:
            return text[:at].strip(), True
        # A character whose last bytes were never written.
        return (text if ended else text.rstrip("\ufffd")).strip(), ended


# A server renders its chat template to one text and tokenizes that with special tokens parsed, so that such a token in
# a user's text would be markup. Names: sentence and turn tokens of the model families that such servers run.
_MARKUP: Final = re.compile(
    r"<(?=\|)|<(?=/?(?:s|unk|pad|bos|eos|mask|start_of_turn|end_of_turn|think|tool_call|tool_response|repo_name)>)"
    r"|\[(?=\||/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS)\])",
    re.IGNORECASE,
)


def harmless(text: str) -> str:
    """Puts a blank behind the first character of whatever looks like a chat token ("<|im_end|>": "< |im_end|>").

    Idempotent, linear, and no change to any other text but lone surrogates, which cannot be sent: they become "?".
    """
    return _MARKUP.sub(lambda found: found[0] + " ", text.encode("utf-8", "replace").decode())


def turns(prompt: JudgePrompt) -> tuple[Turn, ...]:
    """A prompt's complete turns, the item's last, made harmless.

    The item's turn is treated as a whole, so that no token comes to be where its parts meet.
    """
    item = Turn(Role.USER, prompt.lead + prompt.prediction + prompt.tail)
    return tuple(Turn(turn.role, harmless(turn.text)) for turn in (*prompt.fixed, item))


def characters(prompt: JudgePrompt) -> int:
    """Length of all of a prompt's texts."""
    return sum(len(turn.text) for turn in prompt.fixed) + sum(
        map(len, (prompt.lead, prompt.prediction, prompt.tail, prompt.opening))
    )


def fitted(prompt: JudgePrompt, max_characters: int) -> JudgePrompt | None:
    """A prompt with its prediction cut at the end so that it has `max_characters` at most; None: that is not enough.

    Not enough: instructions, question and references alone are longer, or leave no character of the prediction.
    """
    excess = characters(prompt) - max_characters
    if excess <= 0:
        return prompt
    if excess >= len(prompt.prediction):
        return None
    return replace(prompt, prediction=prompt.prediction[:-excess])


def halved(prompt: JudgePrompt) -> JudgePrompt | None:
    """A prompt with half of its prediction; None where that would leave nothing."""
    half = len(prompt.prediction) // 2
    return replace(prompt, prediction=prompt.prediction[:half]) if half else None
