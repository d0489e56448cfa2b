"""From a draw to an example of a task: which right answer is the positive, which wrong ones are the negatives."""

from collections.abc import Callable
from random import Random

from gradewire_train.examples import Example
from gradewire_train.texts.describe import REFUSALS, contrast, filled, sentence
from gradewire_train.texts.draw import Draw, some
from gradewire_train.texts.style import answer_style, question_style

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
    """A sentence around the answer as the positive; the same sentence around a wrong one, and that one, are not.

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
        negatives = (negatives[0], rng.choice(REFUSALS))
    anchor = draw.answer if rng.random() < 0.9 else filled(sentence(rng, ""), draw.answer)
    return Example("descriptions", question_style(rng, draw.question), anchor, positive, negatives)
