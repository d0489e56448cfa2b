"""Answers that evade: denials, corrections, hedged lists, refusals with and without figures, praise, other topics."""

from gradewire_train.graded.data import words
from gradewire_train.graded.part import PartRandom
from gradewire_train.graded.row import Drawn
from gradewire_train.graded.wording import any_of, references, remarks
from gradewire_train.texts.describe import filled, sentence
from gradewire_train.texts.draw import Draw
from gradewire_train.texts.style import capitalised, question_style

_UNSURE = (
    "I am not quite sure, but I believe it is {}.",
    "I cannot give you more than this: {}.",
    "I do not know much about it; it should be {}.",
    "Nobody has told me for certain, yet it is {}.",
    "Sorry for the delay. It is {}.",
    "I'm no expert, but the answer is {}.",
    "There is not much information, though all of it says {}.",
    "As far as anybody can tell: {}.",
)
_ALIASES = ("{}, also known as {}", "{} ({})", "{}, or {} as some write it", "{}, in other words {}")


def denied(rng: PartRandom, draw: Draw, *, right: bool) -> Drawn:
    """A denial, "it is not X": wrong where X is the reference; right where the reference is given instead."""
    if right:
        return corrected(rng, draw, right=True)
    said = any_of(rng, (draw.answer, *draw.same[:1]))
    return _row(rng, draw, filled(rng.choice(words("denials")), said), right=False)


def corrected(rng: PartRandom, draw: Draw, *, right: bool) -> Drawn:
    """A correction, "not A but B": right where B is the reference."""
    other = any_of(rng, draw.wrong)
    said, against = (draw.answer, other) if right else (other, draw.answer)
    return _row(rng, draw, capitalised(rng.choice(words("corrections")).format(said=said, wrong=against)), right=right)


def hedged(rng: PartRandom, draw: Draw, *, right: bool) -> Drawn:
    """A list, "A or B", decides nothing; one answer that is given with doubts, or with its other name, is one."""
    if right:
        if draw.same and rng.random() < 0.3:
            both = _ALIASES[rng.randrange(len(_ALIASES))].format(draw.answer, draw.same[0])
            return _row(rng, draw, filled(sentence(rng, draw.statement), both), right=True)
        return _row(rng, draw, filled(rng.choice(_UNSURE), draw.answer), right=True)
    pair = [draw.answer, any_of(rng, draw.wrong)]
    rng.shuffle(pair)
    return _row(rng, draw, capitalised(rng.choice(words("hedges")).format(*pair)), right=False)


def refused(rng: PartRandom, draw: Draw, *, right: bool) -> Drawn:
    """A refusal, also one that names the reference or another value; doubts before an answer are none."""
    if right:
        return _row(rng, draw, filled(rng.choice(_UNSURE), draw.answer), right=True)
    drawn = rng.random()
    if drawn < 0.5:
        text = rng.choice(words("refusals"))
    else:
        named = draw.answer if drawn < 0.7 else any_of(rng, draw.wrong)
        text = rng.choice(words("refused_figures")).format(named)
    if rng.random() < 0.4:
        text = f"{text} {' '.join(remarks(rng, rng.randrange(1, 3)))}"
    return _row(rng, draw, text, right=False)


def off_topic(rng: PartRandom, draw: Draw, elsewhere: Draw, *, right: bool) -> Drawn:
    """The question repeated, praise alone, or the answer to another question; right: praise before the answer."""
    praise = rng.choice(words("praise")[:10])
    stated = filled(f"{draw.statement}." if draw.statement else sentence(rng, ""), draw.answer)
    if right:
        return _row(rng, draw, f"{praise} {stated}", right=True)
    drawn = rng.randrange(5)
    asked = capitalised(draw.question)
    text = (
        f"{asked}?",
        f"You want to know: {draw.question}.",
        f"{praise} {rng.choice(words('praise'))}",
        filled(f"{elsewhere.statement}." if elsewhere.statement else "It is {}.", elsewhere.answer),
        f"{praise} {' '.join(remarks(rng, 3))}",
    )[drawn]
    return _row(rng, draw, text, right=False)


def _row(rng: PartRandom, draw: Draw, prediction: str, *, right: bool) -> Drawn:
    asked = question_style(rng, draw.question)
    return Drawn(asked, references(rng, draw), prediction, "right", "right" if right else "none")
