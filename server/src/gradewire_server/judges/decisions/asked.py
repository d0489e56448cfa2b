"""What a decision model is asked: a state, and one question about it whose options are the labels.

The item's turn is the state, the instructions are the prompt's own, and each label is described by the line that a chat
model would write with it ("The student's answer is correct"). Demonstrations are left out: a server has one place for a
state, and small decision models read a few hundred tokens of question and options, cutting the rest without a word.
"""

from dataclasses import dataclass, replace
from typing import Final

from gradewire_server.domain.judge import JudgePrompt, Role
from gradewire_server.judges.remote.server import Question
from gradewire_server.judges.remote.text import harmless, turns

_INSTRUCTIONS: Final = "Choose the option that fits best."
"""Where a prompt has none: some servers refuse an empty text."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One question of the type choice; all texts are harmless to a server that writes a chat of them.

    Attributes:
        state: The item.
        instructions: What to decide.
        options: Descriptions by label, in the order of the labels.
    """

    state: str
    instructions: str
    options: dict[str, str]


def without_demonstrations(prompt: JudgePrompt) -> JudgePrompt:
    """A prompt with its instructions as the only fixed turns."""
    return replace(prompt, fixed=tuple(turn for turn in prompt.fixed if turn.role is Role.SYSTEM))


def asked_of(question: Question) -> Asked:
    """What is asked for a choice.

    What the judge said in earlier steps (all lines of the opening but the last) stands behind the instructions: it is
    the judge's own, and no part of the item.
    """
    *instructions, item = (turn.text for turn in turns(without_demonstrations(question.prompt)))
    *earlier, begin = harmless(question.prompt.opening).split("\n")
    said = "\n".join(text for text in ("\n\n".join(instructions), "\n".join(earlier)) if text)
    described = {label: f"{begin} {harmless(label)}".strip() for label in question.options}
    return Asked(item, said or _INSTRUCTIONS, described)
