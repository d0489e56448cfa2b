"""Tells what a judge thought from what it answered: a label in its thoughts is no verdict."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from gradewire_server.judges.openai.message import has_thoughts
from gradewire_server.judges.remote.labels import Step

_BEGIN: Final = re.compile(r"\s*(?:<(?:think|thinking|thought|reasoning)>|\[THINK\])", re.IGNORECASE)
_END: Final = re.compile(r"</(?:think|thinking|thought|reasoning)>|\[/THINK\]", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Spoken:
    """An answer behind its thoughts.

    Attributes:
        text: Without them.
        steps: Without theirs; None where there were none, empty where the answer's own cannot be told from theirs.
        thought: Whether there were any.
        answering: Whether they are known to be over.
    """

    text: str
    steps: tuple[Step, ...] | None
    thought: bool
    answering: bool


def behind_thoughts(message: Mapping[str, Any], text: str, steps: tuple[Step, ...] | None) -> Spoken:
    """Leaves out what stands before the last end of thoughts: a judge may quote an earlier one from an answer.

    Args:
        message: Of the server, for thoughts that it gives apart.
        text: The message's text.
        steps: Of everything that was written, or of the text alone: servers differ.
    """
    apart = has_thoughts(message)
    end = _last_end(text)
    begun = _BEGIN.match(text) is not None
    if end is not None:
        text = text[end:]
    elif begun:
        text = ""
    thought = apart or begun or end is not None
    own_steps = _of_the_answer(steps, text) if steps and thought else steps
    return Spoken(text, own_steps, thought, answering=end is not None or (apart and bool(text.strip())))


def _of_the_answer(steps: Sequence[Step], text: str) -> tuple[Step, ...]:
    written = "".join(step.token for step in steps)
    begin = _last_end(written)
    if begin is None:
        # They were taken out by the server, which may give the steps of both or of the text alone.
        begin = written.rfind(text.strip()) if text.strip() else -1
        while begin > 0 and written[begin - 1].isspace():
            begin -= 1
    place = 0
    for number, step in enumerate(steps if begin >= 0 else ()):
        place += len(step.token)
        if place > begin:
            return (*_behind(step, len(step.token) - (place - begin)), *steps[number + 1 :])
    return ()


def _behind(step: Step, characters: int) -> tuple[Step, ...]:
    """A step whose first characters belong to the thoughts; none where the rest is white space."""
    if characters == 0:
        return (step,)
    head, rest = step.token[:characters], step.token[characters:]
    alike = tuple((token[characters:], logprob) for token, logprob in step.alternatives if token.startswith(head))
    return (Step(rest, alike),) if rest.strip() else ()


def _last_end(text: str) -> int | None:
    return max((found.end() for found in _END.finditer(text)), default=None)
