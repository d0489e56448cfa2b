"""Prompts as texts: chat templates, special tokens made harmless, predictions cut; and where an answer ends."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from gradewire_server.domain.judge import JudgePrompt, Role, Turn


@dataclass(frozen=True, slots=True)
class Markup:
    """A special token, by its name in the vocabulary; never made from a text that looks like it."""

    token: str


@dataclass(frozen=True, slots=True)
class ChatTemplate:
    """The markup around the texts of a chat: special tokens, and words of the template's own."""

    begin: tuple[Markup | str, ...]
    before: Mapping[Role, tuple[Markup | str, ...]]
    after: tuple[Markup | str, ...]


_CHATML: Final = ChatTemplate(
    begin=(),
    before={role: (Markup("<|im_start|>"), f"{role.value}\n") for role in Role},
    after=(Markup("<|im_end|>"), "\n"),
)
TEMPLATES: Final[Mapping[str, ChatTemplate]] = {"chatml": _CHATML}
"""Templates by the name that stands in a judge's description."""
# A server renders its chat template to one text and tokenizes that with special tokens parsed, so that such a token in
# a user's text would be markup. Names: sentence and turn tokens of the model families that such servers run.
_SPECIAL_TOKEN: Final = re.compile(
    r"<(?=\|)|<(?=/?(?:s|unk|pad|bos|eos|mask|start_of_turn|end_of_turn|think|tool_call|tool_response|repo_name)>)"
    r"|\[(?=\||/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS)\])",
    re.IGNORECASE,
)


def first_stop(text: str, stops: Sequence[str]) -> int | None:
    """Return where the first of these texts begins, empty ones left out; None where none is in it."""
    return min((at for at in (text.find(stop) for stop in stops if stop) if at >= 0), default=None)


def harmless(text: str) -> str:
    """Put a blank behind the first character of whatever looks like a chat token ("<|im_end|>": "< |im_end|>").

    Idempotent, linear, and no change to any other text but lone surrogates, which cannot be sent: they become "?".
    """
    return _SPECIAL_TOKEN.sub(lambda found: found[0] + " ", text.encode("utf-8", "replace").decode())


def turns(prompt: JudgePrompt) -> tuple[Turn, ...]:
    """Return a prompt's complete turns, the item's last, made harmless.

    The item's turn is treated as a whole, so that no token comes to be where its parts meet.
    """
    item = Turn(Role.USER, prompt.lead + prompt.prediction + prompt.tail)
    return tuple(Turn(turn.role, harmless(turn.text)) for turn in (*prompt.fixed, item))


def characters(prompt: JudgePrompt) -> int:
    """Return the length of all of a prompt's texts."""
    return sum(len(turn.text) for turn in prompt.fixed) + sum(
        map(len, (prompt.lead, prompt.prediction, prompt.tail, prompt.opening))
    )


def fitted(prompt: JudgePrompt, max_characters: int) -> JudgePrompt | None:
    """Return a prompt of `max_characters` at most, its prediction cut at the end; None: that is not enough.

    Not enough: instructions, question and references alone are longer, or leave no character of the prediction.
    """
    excess = characters(prompt) - max_characters
    if excess <= 0:
        return prompt
    if excess >= len(prompt.prediction):
        return None
    return replace(prompt, prediction=prompt.prediction[:-excess])


def halved(prompt: JudgePrompt) -> JudgePrompt | None:
    """Return a prompt with half of its prediction; None where that would leave nothing."""
    half = len(prompt.prediction) // 2
    return replace(prompt, prediction=prompt.prediction[:half]) if half else None
