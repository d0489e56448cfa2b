"""Forms in which lm-eval logs prompts and what is right."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from gradewire._input.cells import unpacked_list

_TRUTH: Final = {"False": "0", "True": "1"}


def prompt_of(request: Sequence[Any]) -> str:
    """The prompt of a request; of chat servers it stands in a list. "" without one."""
    first = request[0] if request else None
    prompt = first[0] if isinstance(first, list) and first else first
    return prompt if isinstance(prompt, str) else ""


def last_said(prompt: str) -> str:
    """What the user said last, where a prompt is a chat as JSON; any other prompt as it is."""
    if not prompt.startswith("[{"):
        return prompt
    try:
        turns = json.loads(prompt)
    except (ValueError, RecursionError):
        return prompt
    said = [turn.get("content") for turn in turns if isinstance(turn, Mapping) and turn.get("role") == "user"]
    return said[-1] if said and isinstance(said[-1], str) else prompt


def right_places(target: Any, offered: Sequence[str], likeliest: int, accuracy: Any) -> list[int]:
    """Places of the choices that are right; empty where the target names none.

    Args:
        target: As it is logged: a choice's number or text, a list of numbers, or whether it is the second of two.
        offered: Texts of the choices.
        likeliest: The place of the one that the model chose.
        accuracy: What lm-eval made of that (its metric acc), which tells a number from a choice that is a number.
    """
    text = str(target).strip()
    named = {_number(each) for each in (target if isinstance(target, list) else unpacked_list(text) or [text])}
    by_number = [place for place in range(len(offered)) if str(place) in named]
    by_text = [place for place, each in enumerate(offered) if each == text][:1]
    if text in _TRUTH and by_text:
        return by_text
    if by_number and by_text and accuracy in (0, 1):
        fitting = [places for places in (by_number, by_text) if (likeliest in places) == bool(accuracy)]
        return fitting[0] if fitting else by_number
    return by_number or by_text


def _number(target: Any) -> str:
    """A number as lm-eval takes it, which may be a truth value, or a float where a table had gaps."""
    text = str(target).strip()
    return _TRUTH.get(text, text.removesuffix(".0"))
