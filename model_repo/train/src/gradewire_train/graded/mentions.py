"""Draw answers that name two values: the one that they give, and another that they only mention.

A right and a wrong answer have the same form, with the two values exchanged.
"""

import json
from collections.abc import Sequence
from typing import Final

from gradewire_train.graded.parts import PartRandom
from gradewire_train.graded.wording import Drawn, any_of, completed, references, surrounded
from gradewire_train.material import GRADED, MENTIONS
from gradewire_train.texts.draw import Draw, normal
from gradewire_train.texts.names import person_name
from gradewire_train.texts.wording import capitalised, question_style

_OF_OWNERS: Final = 0.55
_VERDICTS: Final = 0.35
_JSON: Final = 0.3
_UNRELATED: Final = 0.1
"""Share of answers that mention a second wrong value, so that a mentioned value is not always the reference."""


def of_another(rng: PartRandom, draw: Draw, *, right: bool) -> Drawn | None:
    """Give the value for the subject of the question, and another value for a different subject."""
    if rng.random() < _OF_OWNERS:
        return _of_owners(rng, right=right)
    return _mentioning(rng, draw, MENTIONS["of_another"], right=right)


def _of_owners(rng: PartRandom, *, right: bool) -> Drawn | None:
    asked, statement, kind = rng.choice(MENTIONS["owners"])
    who, neighbour = rng.sample(GRADED["companies"], 2)
    meant, other = _values(rng, kind)
    if meant == other:
        return None
    if rng.random() < 0.25:
        # The reference is named once: for the subject of the question, or for the other subject alone.
        text = completed(statement, who=who if right else neighbour, value=meant)
        answer = f"{capitalised(text)}."
    else:
        own, theirs = (meant, other) if right else (other, meant)
        told = [completed(statement, who=who, value=own), completed(statement, who=neighbour, value=theirs)]
        rng.shuffle(told)
        form = rng.choice(MENTIONS["side_by_side"])
        answer = capitalised(form.format(told[0], capitalised(told[1]) if ". {}" in form else told[1]))
    question = question_style(rng, completed(asked, who=who))
    return Drawn(question, (meant,), surrounded(rng, answer), meant, meant if right else other)


def _values(rng: PartRandom, kind: str) -> tuple[str, str]:
    if kind == "person":
        return person_name(rng).usual, person_name(rng).usual
    span = (2, 90) if kind == "count" else (1890, 2024)
    return str(rng.randrange(*span)), str(rng.randrange(*span))


def quoted(rng: PartRandom, draw: Draw, *, right: bool) -> Drawn | None:
    """Mention a value in a quotation or claim, and give another; or confirm or reject the claim."""
    if rng.random() >= _VERDICTS:
        return _mentioning(rng, draw, MENTIONS["quoted"], right=right)
    confirmed, rejected = rng.choice(MENTIONS["verdicts"])
    if right or rng.random() < 0.7:
        value, form = _said(rng, draw), confirmed if right else rejected
    else:
        value, form = any_of(rng, draw.wrong), confirmed
    return _row(rng, draw, capitalised(form.replace("{}", value)), right=right)


def retracted(rng: PartRandom, draw: Draw, *, right: bool) -> Drawn | None:
    """Give a value and take another back: struck out, corrected, or thought of first."""
    return _mentioning(rng, draw, MENTIONS["retracted"], right=right)


def contrasted(rng: PartRandom, draw: Draw, *, right: bool) -> Drawn | None:
    """Give a value and contrast it with another that is not the answer."""
    return _mentioning(rng, draw, MENTIONS["contrasted"], right=right)


def wrapped(rng: PartRandom, draw: Draw, *, right: bool) -> Drawn | None:
    """Give the value in a field of JSON, a table, code or LaTeX, with another value in another field."""
    if rng.random() >= _JSON:
        return _mentioning(rng, draw, MENTIONS["wrapped"], right=right, joint="\n\n")
    said, other = _pair(rng, draw, right=right)
    fields = [(rng.choice(MENTIONS["answer_fields"]), said), (rng.choice(MENTIONS["other_fields"]), other)]
    if rng.random() < 0.5:
        fields.append((rng.choice(MENTIONS["more_fields"]), str(rng.randrange(1, 1000))))
    rng.shuffle(fields)
    text = json.dumps(dict(fields), ensure_ascii=False, indent=2 if rng.random() < 0.3 else None)
    if rng.random() < 0.25:
        text = f"```json\n{text}\n```"
    return _row(rng, draw, surrounded(rng, text, "\n\n"), right=right, among=False)


def undecided(rng: PartRandom, draw: Draw, *, right: bool) -> Drawn | None:
    """Name two values and decide for one of them; a wrong answer decides for the other, or for neither."""
    start, decided, left_open = rng.choice(MENTIONS["undecided"])
    said, other = _said(rng, draw), any_of(rng, draw.wrong)
    pair = [said, other]
    rng.shuffle(pair)
    opened = not right and rng.random() < 0.5
    end = left_open if opened else decided.replace("{said}", said if right else other)
    return _row(rng, draw, capitalised(completed(start, first=pair[0], second=pair[1]) + end), right=right)


def _mentioning(
    rng: PartRandom, draw: Draw, templates: Sequence[str], *, right: bool, joint: str = " "
) -> Drawn | None:
    said, other = _pair(rng, draw, right=right)
    if normal(said) == normal(other):
        return None
    text = completed(rng.choice(templates), said=said, other=other)
    if joint == " ":  # code and fields keep their case
        text = capitalised(text)
    return _row(rng, draw, surrounded(rng, text, joint), right=right, among=False)


def _pair(rng: PartRandom, draw: Draw, *, right: bool) -> tuple[str, str]:
    """Return the value to give and the value to mention."""
    own, wrong = _said(rng, draw), any_of(rng, draw.wrong)
    if rng.random() < _UNRELATED:
        another = any_of(rng, draw.wrong)
        return (own, wrong) if right else (wrong, another if another != wrong else own)
    return (own, wrong) if right else (wrong, own)


def _said(rng: PartRandom, draw: Draw) -> str:
    return any_of(rng, draw.same) if draw.same and rng.random() < 0.25 else draw.answer


def _row(rng: PartRandom, draw: Draw, text: str, *, right: bool, among: bool = True) -> Drawn:
    answer = surrounded(rng, text) if among else text
    asked = question_style(rng, draw.question)
    return Drawn(asked, references(rng, draw), answer, "right", "right" if right else "other")
