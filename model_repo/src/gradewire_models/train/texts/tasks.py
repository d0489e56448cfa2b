"""From a draw to an example of a task: which right answer is the positive, which wrong ones are the negatives."""

from collections.abc import Callable
from random import Random

from gradewire_models.train.examples import Example
from gradewire_models.train.texts.describe import contrast, filled, refusal, sentence
from gradewire_models.train.texts.draw import Draw, some
from gradewire_models.train.texts.style import answer_style, styled

_NEGATIVES = 2
_DESCRIPTION_CHARACTERS = 90
"""A statement that is longer is left for a shorter one: what is trained on costs by the token."""

Kind = Callable[[Random], Draw | None]


def contrasted(rng: Random, task: str, draw: Draw) -> Example:
    """Another way to say the answer as the positive, now and then one with more or less detail."""
    loose = bool(draw.looser) and (not draw.same or rng.random() < 0.2)
    positive = rng.choice(draw.looser if loose else draw.same) if draw.same or draw.looser else draw.answer
    anchor = draw.answer
    if not loose and rng.random() < 0.4:
        anchor, positive = positive, anchor
    drawn = styled(rng, draw) if draw.question else draw
    negatives = [answer_style(rng, wrong) for wrong in some(rng, draw.wrong, _NEGATIVES)]
    return Example(task, drawn.question, anchor, answer_style(rng, positive), tuple(negatives))


def candidate(rng: Random, draw: Draw, elsewhere: str) -> Example:
    """A less common answer as the positive: of other detail where there is one; `elsewhere` answers another question.

    Source: Ji, Si, Lin et al. 2024, section 4.1, "Candidate answers", whose negative is an answer drawn from all.
    """
    pool = draw.looser if draw.looser and rng.random() < 0.75 else draw.same or draw.looser
    positive = rng.choice(pool) if pool else draw.answer
    negatives = [rng.choice(draw.wrong), elsewhere]
    drawn = styled(rng, draw)
    return Example("candidates", drawn.question, draw.answer, answer_style(rng, positive), tuple(negatives))


def described(rng: Random, draw: Draw) -> Example:
    """A sentence around the answer as the positive; the same sentence around a wrong one as the negative.

    Source: Ji, Si, Lin et al. 2024, section 4.1, "Generated descriptions".
    """
    statement = draw.statement if len(draw.statement) <= _DESCRIPTION_CHARACTERS else ""
    template = sentence(rng, statement)
    said = rng.choice((draw.answer, *draw.same)) if rng.random() < 0.5 else draw.answer
    wrong = rng.choice(draw.wrong)
    positive, negative = filled(template, said), filled(template, wrong)
    if rng.random() < 0.08:
        positive, negative = contrast(rng, said, wrong)
    other = rng.choice(draw.wrong)
    second = other
    drawn = rng.random()
    if drawn < 0.5:
        second = filled(sentence(rng, statement), other)
    elif drawn < 0.62:
        second = refusal(rng)
    anchor = draw.answer
    if rng.random() < 0.15:  # two sentences of one meaning
        anchor = filled(sentence(rng, ""), draw.answer)
    return Example("descriptions", styled(rng, draw).question, anchor, positive, (negative, second))
