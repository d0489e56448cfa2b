"""Draws: a question with right and wrong answers, checked, as an example of a task."""

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
"""A statement that is longer is left for a shorter one: what is trained on costs by the token."""


@dataclass(frozen=True, slots=True)
class Draw:
    """One drawn question, without any particular style.

    Attributes:
        statement: A sentence that answers it, "{}" where the answer stands; "" where there is none.
        answer: The reference; `same` are other ways to say it.
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
    """Return the text as answers are compared: NFKC, case-folded, without articles, accents and punctuation.

    "The Café" and "cafe" are the same; a sign between digits stays ("1.5" is not "15"), and so does a minus before one.
    """
    folded = unicodedata.normalize("NFKD", text.casefold())
    bare = "".join(character for character in folded if not unicodedata.combining(character))
    bare = re.sub(r"(?<=\d),(?=\d{3}\b)", "", bare)
    bare = re.sub(r"(?<=\d)([.:/])(?=\d)", lambda found: f"p{ord(found[1])}p", bare)
    bare = re.sub(r"(?<![\w])-(?=\d)", "minus ", bare)
    words = _NO_WORD.sub(" ", bare).strip()
    return _NO_WORD.sub(" ", _ARTICLES.sub(" ", words)).strip() or words or text.strip()


def checked(draw: Draw | None) -> Draw | None:
    """Return the draw without repeats and without wrong answers that equal a right one; None where nothing is left.

    A wrong answer that is right would teach the opposite, so whatever equals a right one after `normal` goes.
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
    """Texts that are not blank, each form once, in their order."""
    return list(dict.fromkeys(text for text in texts if text.strip()))


def some(rng: Random, of: Sequence[T], most: int) -> list[T]:
    """Return at most `most` of them, drawn without repeats."""
    return rng.sample(of, min(most, len(of)))


def sound(example: Example) -> bool:
    """Return whether to keep a drawn example: its positive has other words, and no negative is like either.

    Texts are compared as `normal` has them, without accents, articles and punctuation: there are others to draw. What
    somebody wrote as an example is held to `contradiction` alone.
    """
    right = {normal(example.anchor), normal(example.positive)}
    return bool(example.negatives) and not contradiction(example) and right.isdisjoint(map(normal, example.negatives))


def contradiction(example: Example) -> str:
    """Return what in an example teaches nothing, or the opposite of what it should; "" where nothing does.

    A negative is the right answer where it differs in case, blanks, Unicode's form (composed or not) or a full stop at
    the end only. Other signs may be all that tells answers apart: "C++" and "C#", "5" and "-5", "A+" and "A-".
    """
    if not all(each.strip() for each in example.answers):
        return "anchor, positive and negatives should not be blank"
    if example.anchor == example.positive:
        return "anchor and positive are the same text, from which nothing is learnt"
    right = {_form(example.anchor), _form(example.positive)}
    for negative in example.negatives:
        if _form(negative) in right:
            shown = negative[:_SHOWN_CHARACTERS]
            return f"the negative {shown!r} is the anchor or the positive but for case, blanks or a full stop"
    return ""


def _form(text: str) -> str:
    folded = unicodedata.normalize("NFC", unicodedata.normalize("NFD", text).casefold())
    line = " ".join(folded.split())
    return line[:-1].rstrip() if line.endswith(_FULL_STOPS) else line


Kind = Callable[[Random], Draw | None]


def contrasted(rng: Random, task: str, draw: Draw) -> Example:
    """Return another way to say the answer as the positive, now and then one with more or less detail."""
    loose = bool(draw.looser) and (not draw.same or rng.random() < 0.2)
    positive = rng.choice(draw.looser if loose else draw.same) if draw.same or draw.looser else draw.answer
    anchor = draw.answer
    if not loose and rng.random() < 0.4:
        anchor, positive = positive, anchor
    question = question_style(rng, draw.question) if draw.question else ""
    negatives = [answer_style(rng, wrong) for wrong in some(rng, draw.wrong, _NEGATIVES)]
    return Example(task, question, anchor, answer_style(rng, positive), tuple(negatives))


def candidate(rng: Random, draw: Draw, elsewhere: str) -> Example:
    """A less common answer as the positive: of other detail where there is one; `elsewhere` answers another question.

    Source: Ji, Si, Lin et al. 2024, section 4.1, "Candidate answers", whose negative is an answer drawn from all.
    """
    pool = draw.looser if draw.looser and rng.random() < 0.75 else draw.same or draw.looser
    positive = rng.choice(pool) if pool else draw.answer
    negatives = [rng.choice(draw.wrong), elsewhere]
    question = question_style(rng, draw.question)
    return Example("candidates", question, draw.answer, answer_style(rng, positive), tuple(negatives))


def described(rng: Random, draw: Draw) -> Example:
    """Return a sentence around the answer as the positive; the same sentence around a wrong one, and that one, are not.

    A training may ask by them that an answer in a sentence is scored as it is alone: mostly the second negative is the
    answer that the first one puts into a sentence. The others have a sentence that says right and wrong the other way
    round, or a refusal.

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
