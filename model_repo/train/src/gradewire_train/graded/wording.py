"""Define drawn rows, and word their answers."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from gradewire_train.graded.parts import PartRandom
from gradewire_train.material import FLIPS, GRADED
from gradewire_train.texts.draw import Draw, normal
from gradewire_train.texts.lexicon import Lexicon
from gradewire_train.texts.names import person_name
from gradewire_train.texts.wording import answer_style, contrast, filled, question_style, sentence

T = TypeVar("T")

_BARE, _STATED, _CHATTED = 0.33, 0.35, 0.17
_ALONE = 0.75
_PLAINLY = 0.5


@dataclass(frozen=True, slots=True)
class Drawn:
    """An answer to a question, right or wrong by construction.

    `meant` is the references' value and `said` the answer's value, in a canonical form. The answer is right if the two
    are equal.
    """

    question: str
    references: tuple[str, ...]
    prediction: str
    meant: str
    said: str

    @property
    def right(self) -> bool:
        """True if the answer and the references have the same value."""
        return self.meant == self.said


@dataclass(frozen=True, slots=True)
class DrawnRow:
    """A drawn row with its kind and the ID "drawn-PART-KIND-NUMBER"."""

    id: str
    kind: str
    drawn: Drawn

    def json(self) -> str:
        """Return the row as a JSON line with the fields for gradewire's commands."""
        return json.dumps(
            {
                "id": self.id,
                "question": self.drawn.question,
                "references": list(self.drawn.references),
                "prediction": self.drawn.prediction,
                "label": int(self.drawn.right),
                "dataset": "drawn",
                "kind": self.kind,
            },
            ensure_ascii=False,
        )


def wrapped(rng: PartRandom, statement: str, said: str) -> str:
    """Return `said` bare, in a sentence, or among filler sentences."""
    drawn = rng.random()
    if drawn < _BARE:
        return answer_style(rng, said)
    stated = filled(f"{statement}." if statement else "It is {}.", said)
    if drawn < _BARE + _STATED:
        return stated
    if drawn < _BARE + _STATED + _CHATTED:
        return filled(sentence(rng, statement), said)
    after = rng.randrange(1, 4) if rng.random() < 0.7 else rng.randrange(4, 11)
    return " ".join([*remarks(rng, rng.randrange(0, 3)), stated, *remarks(rng, after)])


def remarks(rng: PartRandom, count: int) -> list[str]:
    """Return `count` filler sentences that answer nothing."""
    return rng.sample(GRADED["remarks"], count) if count else []


def surrounded(rng: PartRandom, text: str, joint: str = " ") -> str:
    """Return the text alone, or in a quarter of the cases among filler sentences."""
    if rng.random() < _ALONE:
        return text
    before = rng.randrange(0, 3)
    around = remarks(rng, before + rng.randrange(1, 4))
    ended = f"{text}." if joint == " " and text[-1].isalnum() else text
    return joint.join([*around[:before], ended, *around[before:]])


def another_of(rng: PartRandom, texts: Sequence[T], than: T) -> T:
    """Return one of the part's texts, a different one than `than` if the part has one."""
    others = [each for each in rng.part.of(texts) if each != than]
    own = others or texts
    return own[rng.randrange(len(own))]


def lead(rng: PartRandom) -> str:
    """Return a template for a statement: the statement alone, or after a few words such as "I read that"."""
    return "{}." if rng.random() < _PLAINLY else rng.choice(FLIPS["reported"])


def completed(template: str, **texts: str) -> str:
    """Return the template with its named blanks filled; other braces, as in JSON and LaTeX, stay."""
    for name, text in texts.items():
        template = template.replace(f"{{{name}}}", text)
    return template


def two_names(rng: PartRandom) -> tuple[str, str]:
    """Return two persons who share neither first name nor surname."""
    first, second = person_name(rng), person_name(rng)
    while first.last == second.last or first.first == second.first:
        second = person_name(rng)
    return first.usual, second.usual


def references(rng: PartRandom, draw: Draw) -> tuple[str, ...]:
    """Return the draw's answer. In a quarter of the cases, also return a second wording."""
    more = [any_of(rng, draw.same)] if draw.same and rng.random() < 0.25 else []
    return (draw.answer, *more)


def worded(rng: PartRandom, draw: Draw, *, right: bool, lexicon: Lexicon | None = None) -> Drawn | None:
    """Return a row with one of the draw's right or wrong answers, or None if the row needs the other part's words."""
    said = any_of(rng, (draw.answer, *draw.same, *draw.same) if right else draw.wrong)
    if lexicon is not None and not all(owned(rng, lexicon, each) for each in (draw.answer, *draw.same, said)):
        return None
    if rng.random() < 0.06:
        other = any_of(rng, draw.wrong) if right else draw.answer
        prediction = contrast(rng, said, other)[0]
    else:
        prediction = wrapped(rng, draw.statement, said)
    return Drawn(
        question_style(rng, draw.question),
        references(rng, draw),
        prediction,
        "right",
        "right" if right else normal(said),
    )


def any_of(rng: PartRandom, texts: Sequence[str]) -> str:
    """Return a random text from `texts`, regardless of its part."""
    return texts[rng.randrange(len(texts))]


def owned(rng: PartRandom, lexicon: Lexicon, text: str) -> bool:
    """Return True if the part owns `text`, or if WordNet lacks `text`; treat a plural like the singular."""
    bare = normal(text)
    known = [each for each in (bare, bare.removesuffix("s"), bare.removesuffix("es")) if lexicon.keys_of(each)]
    return all(rng.part.owns(each) for each in known[:1])
