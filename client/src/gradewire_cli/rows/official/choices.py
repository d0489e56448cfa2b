"""Answers, questions and choices in logs of harnesses: letters in the place of texts, and fields under many names."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from gradewire._rows import is_of_numbers, unpacked_list

_LETTER: Final = re.compile(r"\A\(?([A-Z])\)?[.:]?\Z")
_OPTION: Final = re.compile(r"^[ \t]*\(?([A-Z])[).:][ \t]+(\S.*?)[ \t]*$", re.MULTILINE)
QUESTIONS: Final = ("question", "query", "problem", "question_text", "question_stem", "input", "instruction", "prompt")
"""Names of a document's question; the first with a text counts, capitals do not matter."""
REFERENCES: Final = ("answers", "answer", "references", "reference", "target", "targets", "label")
"""Names of what a document says is right."""
_CATEGORIES: Final = ("category", "question_type", "subdomain", "sub_category", "subject", "task_type")


def letter_position(text: str) -> int | None:
    """Return the place of the choice that a text names by its letter alone: "B", "(B)", "B."; None without one."""
    found = _LETTER.match(text.strip())
    return ord(found[1]) - ord("A") if found else None


def choice_texts(offered: Sequence[str], choices: Any, prompt: str = "") -> list[str]:
    """Return what a model could choose, as texts: those of the document, else of the prompt, where it chose letters.

    Args:
        offered: What was offered.
        choices: The document's choices: texts, or an object with texts under "text".
        prompt: That may list them, a line each.
    """
    texts = choices.get("text") if isinstance(choices, Mapping) else choices
    if [letter_position(text) for text in offered] != list(range(len(offered))):
        return list(offered)
    if isinstance(texts, list) and len(texts) == len(offered):
        return list(map(str, texts))
    listed = options_in(prompt)
    return listed if len(listed) == len(offered) else list(offered)


def options_in(prompt: str) -> list[str]:
    """Return the options that a prompt lists, a line each: "A. red", "(A) red", "A: red"; empty without A and B."""
    options: list[str] = []
    for letter, text in _OPTION.findall(prompt):
        if ord(letter) - ord("A") == len(options):
            options.append(text)
        elif letter == "A":  # of few-shot prompts the last question counts
            options = [text]
    return options if len(options) > 1 else []


def option_position(answer: str, options: Sequence[str]) -> int | None:
    """Return the place of the option that an answer names by its letter and nothing else; None without one.

    A small letter names one too, where it is no option itself.
    """
    place = letter_position(answer if answer in options else answer.upper())
    return place if place is not None and place < len(options) else None


def option_named(answer: Any, options: Sequence[str]) -> Any:
    """Return the text of the option that an answer names, by its letter, or by both; any other answer as it is."""
    if not isinstance(answer, str):
        return answer
    place = option_position(answer, options)
    if place is not None:
        return options[place]
    both = _OPTION.fullmatch(answer.strip())
    named = letter_position(both[1]) if both else None
    is_option = both and named is not None and named < len(options) and both[2] == options[named]
    return both[2] if both and is_option else answer


def named_texts(target: Any) -> Any:
    """Return the texts of a target that is a list as a text; one of numbers, and any other target, as it is."""
    listed = unpacked_list(target) if isinstance(target, str) else None
    return target if listed is None or is_of_numbers(listed) else listed


def question_of(doc: Mapping[str, Any]) -> str:
    """Return the question of a document; "" where none of its fields is one."""
    return next((value for value in _values(doc, QUESTIONS) if isinstance(value, str) and value.strip()), "")


def references_of(doc: Mapping[str, Any]) -> Any:
    """Return what a document says is right, as it stands there; None without."""
    return next((value for value in _values(doc, REFERENCES) if value not in (None, "", [])), None)


def category_of(*objects: Any) -> str:
    """Return the kind of question by which a data set groups its means; "" where no object says one."""
    found = (each.get(name) for each in objects if isinstance(each, Mapping) for name in _CATEGORIES)
    return next((value for value in found if isinstance(value, str) and value), "")


def _values(doc: Mapping[str, Any], names: Sequence[str]) -> Iterator[Any]:
    alike = {str(name).casefold(): value for name, value in reversed(list(doc.items()))}
    return (alike[name] for name in names if name in alike)
