"""Turn draws, which are questions with right and wrong answers, into checked examples for a task."""

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
"""Maximum length of a statement, because training time grows with the number of tokens."""


@dataclass(frozen=True, slots=True)
class Draw:
    """A drawn question with right and wrong answers, before `question_style` and `answer_style` vary them.

    Attributes:
        statement: Sentence with "{}" in place of the answer; "" without a sentence.
        answer: The reference; `same` contains its other wordings.
        looser: Right answers with more or less detail than `answer`.
    """

    question: str
    statement: str
    answer: str
    same: tuple[str, ...]
    looser: tuple[str, ...]
    wrong: tuple[str, ...]


def normal(text: str) -> str:
    """Return the text for comparisons: case-folded, without articles, accents and punctuation.

    A sign between two digits stays, and so does a minus before a digit, so "1.5" and "15" differ.
    """
    folded = unicodedata.normalize("NFKD", text.casefold())
    bare = "".join(character for character in folded if not unicodedata.combining(character))
    bare = re.sub(r"(?<=\d),(?=\d{3}\b)", "", bare)
    bare = re.sub(r"(?<=\d)([.:/])(?=\d)", lambda found: f"p{ord(found[1])}p", bare)
    bare = re.sub(r"(?<![\w])-(?=\d)", "minus ", bare)
    words = _NO_WORD.sub(" ", bare).strip()
    return _NO_WORD.sub(" ", _ARTICLES.sub(" ", words)).strip() or words or text.strip()


def checked(draw: Draw | None) -> Draw | None:
    """Remove repeated answers, and wrong answers whose `normal` form equals that of a right answer.

    A right answer among the wrong answers would teach the opposite. Return None if no wrong answer is left, or if the
    reference is blank.
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
    """Return the distinct texts that are not blank, in order."""
    return list(dict.fromkeys(text for text in texts if text.strip()))


def some(rng: Random, of: Sequence[T], most: int) -> list[T]:
    """Return at most `most` items from `of`, drawn without repeats."""
    return rng.sample(of, min(most, len(of)))


def sound(example: Example) -> bool:
    """Return True if, in `normal` form, no negative of a drawn example equals the anchor or the positive.

    This may reject good examples, but more can be drawn. A user's examples need only pass `contradiction`.
    """
    right = {normal(example.anchor), normal(example.positive)}
    return bool(example.negatives) and not contradiction(example) and right.isdisjoint(map(normal, example.negatives))


def contradiction(example: Example) -> str:
    """Return the reason why an example would teach nothing or the opposite, or "" for a good example.

    A negative counts as equal to the anchor or the positive if the texts differ only in case, blanks, Unicode
    composition or a final full stop.
    """
    if not all(each.strip() for each in example.answers):
        return "anchor, positive and negatives must not be blank"
    if example.anchor == example.positive:
        return "anchor and positive must be different texts"
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
    """Return an example whose positive rewords the anchor, sometimes with more or less detail."""
    loose = bool(draw.looser) and (not draw.same or rng.random() < 0.2)
    positive = rng.choice(draw.looser if loose else draw.same) if draw.same or draw.looser else draw.answer
    anchor = draw.answer
    if not loose and rng.random() < 0.4:
        anchor, positive = positive, anchor
    question = question_style(rng, draw.question) if draw.question else ""
    negatives = [answer_style(rng, wrong) for wrong in some(rng, draw.wrong, _NEGATIVES)]
    return Example(task, question, anchor, answer_style(rng, positive), tuple(negatives))


def candidate(rng: Random, draw: Draw, elsewhere: str) -> Example:
    """Return an example whose positive usually has more or less detail than the anchor.

    One negative is a wrong answer, the other is `elsewhere`, the answer to a different question. Source: Ji, Si, Lin et
    al. 2024, section 4.1, "Candidate answers".
    """
    pool = draw.looser if draw.looser and rng.random() < 0.75 else draw.same or draw.looser
    positive = rng.choice(pool) if pool else draw.answer
    negatives = [rng.choice(draw.wrong), elsewhere]
    question = question_style(rng, draw.question)
    return Example("candidates", question, draw.answer, answer_style(rng, positive), tuple(negatives))


def described(rng: Random, draw: Draw) -> Example:
    """Return an example whose positive is a sentence with the answer.

    The first negative is the same sentence with a wrong answer. The second negative is usually the bare wrong answer,
    so that the encoder learns to score answers with and without a sentence alike. In some examples, the second negative
    is a refusal. In others, the positive prefers the answer to a wrong answer, and the first negative says the reverse.

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
