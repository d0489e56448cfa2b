"""Turn draws (a question with right and wrong answers) into checked examples of a task."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import TypeVar

from gradewire_train.examples import Example
from gradewire_train.material import ANSWERS
from gradewire_train.texts.wording import answer_style, contrast, filled, question_style, sentence

T = TypeVar("T")

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_WORD = re.compile(r"[\W_]+")

_FULL_STOPS = (".", "\N{IDEOGRAPHIC FULL STOP}")
_SHOWN_CHARACTERS = 40

_NEGATIVES = 2
_DESCRIPTION_CHARACTERS = 90
"""Longest statement to use, because training time grows with the tokens."""


@dataclass(frozen=True, slots=True)
class Draw:
    """A drawn question, without any particular style.

    Attributes:
        statement: Sentence that answers it, with "{}" for the answer; "" without one.
        answer: The reference; `same` holds other wordings of it.
        looser: Right answers with more or less detail than `answer`.
        wrong: Wrong answers of the same kind, the most similar first or in any order.
    """

    question: str
    statement: str
    answer: str
    same: tuple[str, ...]
    looser: tuple[str, ...]
    wrong: tuple[str, ...]


def normal(text: str) -> str:
    """Return the text in the form for comparisons: NFKC, case-folded, without articles, accents and punctuation.

    "The Café" and "cafe" are equal. Signs between digits stay ("1.5" is not "15"), and so does a minus before a digit.
    """
    folded = unicodedata.normalize("NFKD", text.casefold())
    bare = "".join(character for character in folded if not unicodedata.combining(character))
    bare = re.sub(r"(?<=\d),(?=\d{3}\b)", "", bare)
    bare = re.sub(r"(?<=\d)([.:/])(?=\d)", lambda found: f"p{ord(found[1])}p", bare)
    bare = re.sub(r"(?<![\w])-(?=\d)", "minus ", bare)
    words = _NO_WORD.sub(" ", bare).strip()
    return _NO_WORD.sub(" ", _ARTICLES.sub(" ", words)).strip() or words or text.strip()


def checked(draw: Draw | None) -> Draw | None:
    """Return the draw without repeats and without wrong answers that equal a right one; None if nothing is left.

    A right answer among the wrong ones would teach the opposite, so answers are compared after `normal`.
    """
    if draw is None:
        return None
    right = {normal(each) for each in (draw.answer, *draw.same, *draw.looser)}
    wrong = tuple(each for each in unique(draw.wrong) if normal(each) not in right)
    same = tuple(each for each in unique(draw.same) if each != draw.answer)
    looser = tuple(each for each in unique(draw.looser) if each != draw.answer and each not in same)
    if not wrong or not draw.answer.strip():
        return None
    return replace(draw, same=same, looser=looser, wrong=wrong)


def unique(texts: Iterable[str]) -> list[str]:
    """Return texts that are not blank, each form once, in order."""
    return list(dict.fromkeys(text for text in texts if text.strip()))


def some(rng: Random, of: Sequence[T], most: int) -> list[T]:
    """Return at most `most` of them, drawn without repeats."""
    return rng.sample(of, min(most, len(of)))


def sound(example: Example) -> bool:
    """Return True to keep a drawn example: its positive has other words, and no negative equals either.

    Texts are compared after `normal`, which may reject too many, because others can be drawn. A user's own examples
    only have to pass `contradiction`.
    """
    right = {normal(example.anchor), normal(example.positive)}
    return bool(example.negatives) and not contradiction(example) and right.isdisjoint(map(normal, example.negatives))


def contradiction(example: Example) -> str:
    """Return the reason why an example teaches nothing, or the opposite of the right answer; "" without one.

    A negative counts as right if it differs only in case, blanks, Unicode form (composed or not) or a final full stop.
    Other signs may matter: "C++" and "C#", "5" and "-5", "A+" and "A-".
    """
    if not all(each.strip() for each in example.answers):
        return "anchor, positive and negatives should not be blank"
    if example.anchor == example.positive:
        return "anchor and positive should be different texts"
    right = {_form(example.anchor), _form(example.positive)}
    for negative in example.negatives:
        if _form(negative) in right:
            shown = negative[:_SHOWN_CHARACTERS]
            return f"the negative {shown!r} equals the anchor or the positive except for case, blanks or a full stop"
    return ""


def _form(text: str) -> str:
    folded = unicodedata.normalize("NFC", unicodedata.normalize("NFD", text).casefold())
    line = " ".join(folded.split())
    return line[:-1].rstrip() if line.endswith(_FULL_STOPS) else line


Kind = Callable[[Random], Draw | None]


def contrasted(rng: Random, task: str, draw: Draw) -> Example:
    """Return an example with another wording as the positive, sometimes one with more or less detail."""
    loose = bool(draw.looser) and (not draw.same or rng.random() < 0.2)
    positive = rng.choice(draw.looser if loose else draw.same) if draw.same or draw.looser else draw.answer
    anchor = draw.answer
    if not loose and rng.random() < 0.4:
        anchor, positive = positive, anchor
    question = question_style(rng, draw.question) if draw.question else ""
    negatives = [answer_style(rng, wrong) for wrong in some(rng, draw.wrong, _NEGATIVES)]
    return Example(task, question, anchor, answer_style(rng, positive), tuple(negatives))


def candidate(rng: Random, draw: Draw, elsewhere: str) -> Example:
    """Return an example with a less common positive, if possible with other detail; `elsewhere` is a negative.

    Source: Ji, Si, Lin et al. 2024, section 4.1, "Candidate answers", whose negative is an answer drawn from all.
    """
    pool = draw.looser if draw.looser and rng.random() < 0.75 else draw.same or draw.looser
    positive = rng.choice(pool) if pool else draw.answer
    negatives = [rng.choice(draw.wrong), elsewhere]
    question = question_style(rng, draw.question)
    return Example("candidates", question, draw.answer, answer_style(rng, positive), tuple(negatives))


def described(rng: Random, draw: Draw) -> Example:
    """Return an example with a sentence around the answer as positive, and the same around a wrong answer as negative.

    The second negative is usually that wrong answer alone, so that a training can score answers alone and in a sentence
    alike. Some examples have a sentence that swaps right and wrong, or a refusal instead.

    Source: Ji, Si, Lin et al. 2024, section 4.1, "Generated descriptions".
    """
    statement = draw.statement if len(draw.statement) <= _DESCRIPTION_CHARACTERS else ""
    template = sentence(rng, statement)
    said = rng.choice((draw.answer, *draw.same)) if rng.random() < 0.5 else draw.answer
    if draw.looser and rng.random() < 0.1:
        said = rng.choice(draw.looser)
    wrong = rng.choice(draw.wrong)
    positive, negatives = filled(template, said), (filled(template, wrong), wrong)
    drawn = rng.random()
    if drawn < 0.05:
        positive, turned = contrast(rng, said, wrong)
        negatives = (turned, wrong)
    elif drawn < 0.12:
        negatives = (negatives[0], rng.choice(ANSWERS["refusals"]))
    anchor = draw.answer if rng.random() < 0.9 else filled(sentence(rng, ""), draw.answer)
    return Example("descriptions", question_style(rng, draw.question), anchor, positive, negatives)
