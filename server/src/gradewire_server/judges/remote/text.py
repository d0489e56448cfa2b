"""Prepares prompts for a server that tokenizes them itself: makes chat tokens harmless, cuts long predictions."""

import re
from dataclasses import replace
from typing import Final

from gradewire_server.domain.judge import JudgePrompt, Role, Turn

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
