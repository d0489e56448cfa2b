"""Forms in which lm-eval logs prompts and what is right."""

import json
import string
from collections.abc import Mapping, Sequence
from typing import Any, Final

from gradewire._input.cells import unpacked_list
from gradewire.cli.input.official.choices import letter_place

_TRUTH: Final = {"False": "0", "True": "1"}
_FINAL: Final = "####"


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


def final_answer(target: str) -> str:
    """What stands behind "####" in the last line of a worked solution, as GSM8K has it; any other target as it is."""
    solution, mark, answer = target.rpartition(_FINAL)
    worked = bool(mark) and solution.endswith("\n") and bool(solution.strip())
    return answer.strip() if worked and answer.strip() and "\n" not in answer.strip() else target


def options_of(doc: Mapping[str, Any]) -> list[str]:
    """Texts of a document's choices, in the order of their letters; empty where it has none, or one is a letter."""
    for name in ("options", "choices"):
        given = doc.get(name)
        if isinstance(given, Mapping):
            by_letter = list(given) == list(string.ascii_uppercase[: len(given)])
            given = list(given.values()) if by_letter else given.get("text")
        if (
            isinstance(given, list)
            and len(given) > 1
            and all(isinstance(each, str) and letter_place(each) is None for each in given)
        ):
            return given
    return []


def marked_places(doc: Mapping[str, Any], offered: Sequence[str]) -> list[int]:
    """Places of the choices that a document marks by 1 among 0, as TruthfulQA does; empty where it marks none."""
    for each in doc.values():
        choices, labels = (each.get("choices"), each.get("labels")) if isinstance(each, Mapping) else (None, None)
        if (
            isinstance(choices, list)
            and isinstance(labels, list)
            and len(labels) == len(choices)
            and [str(choice).strip() for choice in choices] == list(offered)
            and all(label in (0, 1) for label in labels)
        ):
            return [place for place, label in enumerate(labels) if label == 1]
    return []


def names_fields(target: Any, doc: Mapping[str, Any]) -> bool:
    """Whether a target is names of fields and no answer, as lm-eval joins those of DROP's object `answer`."""
    return any(isinstance(each, Mapping) and each and target == ",".join(map(str, each)) for each in doc.values())


def in_one_text(answers: Any) -> Any:
    """Answers, of which those of several parts, as DROP's of several spans, are a text each; others as they are."""
    if not isinstance(answers, list) or not all(isinstance(each, list) for each in answers):
        return answers
    return [", ".join(map(str, parts)) for parts in answers]


def is_checked_by_rules(doc: Mapping[str, Any]) -> bool:
    """Whether answers are held against instructions and no text, as IFEval does, whose target is a 0 for nothing."""
    return "instruction_id_list" in doc


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
