"""A question with answers that are right and answers that are not: what every task makes its examples from."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import TypeVar

T = TypeVar("T")

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_WORD = re.compile(r"[\W_]+")


@dataclass(frozen=True, slots=True)
class Draw:
    """One drawn question.

    Attributes:
        question: Without any particular style.
        statement: A sentence that answers it, "{}" where the answer stands; "" where there is none.
        answer: The reference.
        same: Other ways to say `answer`.
        looser: Right too, with more or less detail than `answer`.
        wrong: Answers of the same kind that are wrong, the most alike first or in any order.
    """

    question: str
    statement: str
    answer: str
    same: tuple[str, ...]
    looser: tuple[str, ...]
    wrong: tuple[str, ...]


def normal(text: str) -> str:
    """The text as answers are compared: NFKC, case-folded, without articles, accents and punctuation.

    "The Café" and "cafe" are the same; a sign between digits stays ("1.5" is not "15"), and so does a minus before one.
    """
    folded = unicodedata.normalize("NFKD", text.casefold())
    bare = "".join(character for character in folded if not unicodedata.combining(character))
    bare = re.sub(r"(?<=\d),(?=\d{3}\b)", "", bare)
    bare = re.sub(r"(?<=\d)([.:/])(?=\d)", lambda found: f"p{ord(found[1])}p", bare)
    bare = re.sub(r"(?<![\w])-(?=\d)", "minus ", bare)
    words = _NO_WORD.sub(" ", bare).strip()
    return _NO_WORD.sub(" ", _ARTICLES.sub(" ", words)).strip() or words or text.strip()


def checked(draw: Draw) -> Draw | None:
    """The draw without repeats and without wrong answers that equal a right one; None where nothing is left.

    A wrong answer that is right would teach the opposite, so whatever equals a right one after `normal` goes.
    """
    right = {normal(each) for each in (draw.answer, *draw.same, *draw.looser)}
    wrong = tuple(each for each in unique(draw.wrong) if normal(each) not in right)
    same = tuple(each for each in unique(draw.same) if each != draw.answer)
    looser = tuple(each for each in unique(draw.looser) if each != draw.answer and each not in same)
    if not wrong or not draw.answer.strip():
        return None
    return replace(draw, same=same, looser=looser, wrong=wrong)


def unique(texts: Iterable[str]) -> list[str]:
    """Texts that are not blank, each form once, in their order."""
    return list(dict.fromkeys(text for text in texts if text.strip()))


def some(rng: Random, of: Sequence[T], most: int) -> list[T]:
    """At most `most` of them, drawn without repeats."""
    return rng.sample(of, min(most, len(of)))
