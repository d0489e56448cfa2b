"""Letters of choices, and the texts that they stand for."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

_LETTER: Final = re.compile(r"\A\(?([A-Z])\)?[.:]?\Z")
_OPTION: Final = re.compile(r"^[ \t]*\(?([A-Z])[).:][ \t]+(\S.*?)[ \t]*$", re.MULTILINE)


def letter_place(text: str) -> int | None:
    """The place of the choice that a text names by its letter and nothing else: "B", "(B)", "B."; None without one."""
    found = _LETTER.match(text.strip())
    return ord(found[1]) - ord("A") if found else None


def choice_texts(offered: Sequence[str], choices: Any, prompt: str = "") -> list[str]:
    """What a model could choose, as texts: those of the document, else of the prompt, where letters were offered.

    Args:
        offered: What was offered.
        choices: The document's choices: texts, or an object with texts under "text".
        prompt: That may list them, a line each.
    """
    texts = choices.get("text") if isinstance(choices, Mapping) else choices
    if [letter_place(text) for text in offered] != list(range(len(offered))):
        return list(offered)
    if isinstance(texts, list) and len(texts) == len(offered):
        return list(map(str, texts))
    listed = options_in(prompt)
    return listed if len(listed) == len(offered) else list(offered)


def options_in(prompt: str) -> list[str]:
    """The options that a prompt lists, a line each: "A. red", "(A) red", "A: red"; empty without A and B."""
    options: list[str] = []
    for letter, text in _OPTION.findall(prompt):
        if ord(letter) - ord("A") == len(options):
            options.append(text)
        elif letter == "A":  # of few-shot prompts the last question counts
            options = [text]
    return options if len(options) > 1 else []


def option_place(answer: str, options: Sequence[str]) -> int | None:
    """The place of the option that an answer names by its letter and nothing else; None without one.

    A small letter names one too, where it is no option itself.
    """
    place = letter_place(answer if answer in options else answer.upper())
    return place if place is not None and place < len(options) else None


def option_named(answer: str, options: Sequence[str]) -> str:
    """The text of the option that an answer names, by its letter, or by both; any other answer as it is."""
    place = option_place(answer, options)
    if place is not None:
        return options[place]
    both = _OPTION.fullmatch(answer.strip())
    named = letter_place(both[1]) if both else None
    if both and named is not None and named < len(options) and both[2] == options[named]:
        return options[named]
    return answer
