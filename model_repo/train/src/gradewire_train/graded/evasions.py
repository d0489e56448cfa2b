"""Draw answers that evade the question or add statements."""

from gradewire_train.graded.parts import PartRandom
from gradewire_train.graded.wording import Drawn, any_of, references, remarks
from gradewire_train.material import GRADED
from gradewire_train.texts.draw import Draw
from gradewire_train.texts.wording import capitalised, filled, question_style, sentence


def denied(rng: PartRandom, draw: Draw, *, right: bool) -> Drawn:
    """Draw a denial, "it is not X"; if `right` is True, draw a correction that states the reference."""
    if right:
        return corrected(rng, draw, right=True)
    said = any_of(rng, (draw.answer, *draw.same[:1]))
    return _row(rng, draw, filled(rng.choice(GRADED["denials"]), said), right=False)


def corrected(rng: PartRandom, draw: Draw, *, right: bool) -> Drawn:
    """Draw a correction, "not A but B", in which the reference is B if `right` is True and A if `right` is False."""
    other = any_of(rng, draw.wrong)
    said, against = (draw.answer, other) if right else (other, draw.answer)
    return _row(rng, draw, capitalised(rng.choice(GRADED["corrections"]).format(said=said, wrong=against)), right=right)


def hedged(rng: PartRandom, draw: Draw, *, right: bool) -> Drawn:
    """Draw an undecided answer, "A or B"; if `right` is True, state the reference with doubt or with a second name."""
    if right:
        if draw.same and rng.random() < 0.3:
            both = any_of(rng, GRADED["aliases"]).format(draw.answer, draw.same[0])
            return _row(rng, draw, filled(sentence(rng, draw.statement), both), right=True)
        return _row(rng, draw, filled(rng.choice(GRADED["doubts"]), draw.answer), right=True)
    pair = [draw.answer, any_of(rng, draw.wrong)]
    rng.shuffle(pair)
    return _row(rng, draw, capitalised(rng.choice(GRADED["hedges"]).format(*pair)), right=False)


def refused(rng: PartRandom, draw: Draw, *, right: bool) -> Drawn:
    """Draw a refusal, which may contain the reference; if `right` is True, state the reference with doubt."""
    if right:
        return _row(rng, draw, filled(rng.choice(GRADED["doubts"]), draw.answer), right=True)
    drawn = rng.random()
    if drawn < 0.5:
        text = rng.choice(GRADED["refusals"])
    else:
        named = draw.answer if drawn < 0.7 else any_of(rng, draw.wrong)
        text = rng.choice(GRADED["refused_figures"]).format(named)
    if rng.random() < 0.4:
        text = f"{text} {' '.join(remarks(rng, rng.randrange(1, 3)))}"
    return _row(rng, draw, text, right=False)


def off_topic(rng: PartRandom, draw: Draw, elsewhere: Draw, *, right: bool) -> Drawn:
    """Draw an evasion; if `right` is True, state the reference after praise for the question.

    An evasion repeats the question, contains only praise and filler sentences, or answers the question `elsewhere`.
    """
    praise = rng.choice(GRADED["praise"][:10])
    stated = filled(f"{draw.statement}." if draw.statement else sentence(rng, ""), draw.answer)
    if right:
        return _row(rng, draw, f"{praise} {stated}", right=True)
    drawn = rng.randrange(5)
    asked = capitalised(draw.question)
    text = (
        f"{asked}?",
        f"You want to know: {draw.question}.",
        f"{praise} {rng.choice(GRADED['praise'])}",
        filled(f"{elsewhere.statement}." if elsewhere.statement else "It is {}.", elsewhere.answer),
        f"{praise} {' '.join(remarks(rng, 3))}",
    )[drawn]
    return _row(rng, draw, text, right=False)


def long(rng: PartRandom, draw: Draw, *, right: bool) -> Drawn | None:
    """Draw a text of 40 to 200 words that states one answer, among filler sentences and mentions of other names."""
    if len(draw.wrong) < 2:
        return None
    said, others = draw.answer if right else draw.wrong[0], list(draw.wrong[1:3])
    if not right and rng.random() < 0.5:
        others[0] = draw.answer
    stated = filled(f"{draw.statement}." if draw.statement else sentence(rng, ""), said)
    named = [capitalised(rng.choice(GRADED["others"]).format(other)) for other in others]
    body = [*remarks(rng, rng.randrange(3, 13)), *named]
    rng.shuffle(body)
    body.insert(0 if rng.random() < 0.5 else rng.randrange(len(body) + 1), stated)
    question = question_style(rng, draw.question)
    return Drawn(question, references(rng, draw), " ".join(body), "right", "right" if right else "other")


def _row(rng: PartRandom, draw: Draw, prediction: str, *, right: bool) -> Drawn:
    asked = question_style(rng, draw.question)
    return Drawn(asked, references(rng, draw), prediction, "right", "right" if right else "none")
