"""Dates in sentences that are equal but for the date: day, month, year, decade, range, century, before and after."""

import datetime as dt
from typing import Final

from gradewire_train.graded.part import PartRandom
from gradewire_train.graded.row import Drawn
from gradewire_train.graded.wording import remarks, wrapped
from gradewire_train.texts.data import word_list
from gradewire_train.texts.style import question_style
from gradewire_train.texts.values.names import person_name
from gradewire_train.texts.values.number_words import ordinal, ordinal_in_words
from gradewire_train.texts.values.titles import title

_MONTHS: Final = word_list("months")
_EVENTS: Final = (
    ("when did {who} sign the agreement", "{who} signed the agreement {}"),
    ("when was {what} first performed", "{what} was first performed {}"),
    ("on which day did {who} arrive", "{who} arrived {}"),
    ("when did {who} retire", "{who} retired {}"),
    ("when was {what} sold", "{what} was sold {}"),
    ("when did the excavation begin", "The excavation began {}"),
    ("when did {who} move to the coast", "{who} moved to the coast {}"),
    ("when was the station closed", "The station was closed {}"),
    ("date of the premiere of {what}", "The premiere of {what} took place {}"),
    ("when did {who} receive the medal", "{who} received the medal {}"),
    ("when was the tower struck by lightning", "The tower was struck by lightning {}"),
    ("when did {who} start at the university", "{who} started at the university {}"),
)


def dated_sentence(rng: PartRandom, *, right: bool) -> Drawn:
    """The same sentence with the same day in another form; wrong: another day, month or year in it."""
    question, statement = _asked(rng)
    day = dt.date(rng.randrange(1700, 2024), rng.randrange(1, 13), rng.randrange(1, 29))
    other = day
    if not right:
        changed = rng.randrange(4)
        if changed == 0:
            other = day.replace(year=day.year + rng.choice((-1, 1)) * rng.randrange(1, 15))
        elif changed == 1:
            other = day.replace(month=(day.month + rng.randrange(0, 10)) % 12 + 1)
        elif changed == 2:
            other = day.replace(day=(day.day + rng.randrange(0, 26)) % 28 + 1)
        else:
            other = dt.date(rng.randrange(1700, 2024), rng.randrange(1, 13), rng.randrange(1, 29))
    reference = _form(rng, day)
    if rng.random() < 0.4:
        reference = f"{statement.format(f'on {reference}')}."
    return _row(rng, question, statement, reference, _form(rng, other), day.isoformat(), other.isoformat(), "on ")


def years_about(rng: PartRandom, *, right: bool) -> Drawn | None:
    """A decade, century or range that a more precise year lies in; wrong: a year outside of it."""
    question, statement = _asked(rng)
    year = rng.randrange(1400, 2024)
    shape = rng.randrange(4)
    if shape == 0:
        low, high, reference = year // 10 * 10, year // 10 * 10 + 9, f"the {year // 10 * 10}s"
    elif shape == 1:
        low = (year - 1) // 100 * 100 + 1
        high, name = low + 99, (ordinal, ordinal_in_words)[rng.randrange(2)]((year - 1) // 100 + 1)
        reference = f"the {name} century"
    elif shape == 2:
        low, high = year, year + rng.randrange(3, 20)
        reference = (f"between {low} and {high}", f"from {low} to {high}", f"{low}-{high}")[rng.randrange(3)]
    else:
        low = year // 10 * 10
        low, high, reference = ((low, low + 3, f"the early {low}s"), (low + 7, low + 9, f"the late {low}s"))[
            rng.randrange(2)
        ]
    drawn = rng.randrange(low, high + 1)
    if not right:
        drawn += rng.choice((-1, 1)) * rng.randrange(high - low + 1, high - low + 60)
    inside = low <= drawn <= high
    if inside != right:
        return None
    answer = f"{_MONTHS[rng.randrange(12)]} {drawn}" if rng.random() < 0.2 else str(drawn)
    return _row(rng, question, statement, reference, answer, "inside", "inside" if inside else "outside", "in ")


def part_of_date(rng: PartRandom, *, right: bool) -> Drawn:
    """Asked for a year or month: the full date says it; wrong: one that differs in what was asked for."""
    question, statement = _asked(rng)
    day = dt.date(rng.randrange(1700, 2024), rng.randrange(1, 13), rng.randrange(1, 29))
    other = day
    if rng.random() < 0.5:
        reference = str(day.year)
        if not right:
            other = day.replace(year=day.year + rng.choice((-1, 1)) * rng.randrange(1, 40))
        meant, said = reference, str(other.year)
    else:
        reference = f"{_MONTHS[day.month - 1]} {day.year}"
        if not right:
            other = day.replace(month=(day.month + rng.randrange(0, 10)) % 12 + 1)
        meant, said = (f"{each.year}-{each.month}" for each in (day, other))
    return _row(rng, question, statement, reference, _form(rng, other), meant, said, "on ")


def _asked(rng: PartRandom) -> tuple[str, str]:
    question, statement = rng.choice(_EVENTS)
    blanks = {"who": person_name(rng).usual, "what": title(rng)}
    return question.format(**blanks), statement.format("{}", **blanks)


def _form(rng: PartRandom, day: dt.date) -> str:
    month = _MONTHS[day.month - 1]
    return (
        f"{month} {day.day}, {day.year}",
        f"{day.day} {month} {day.year}",
        day.isoformat(),
        f"{month} {ordinal(day.day)}, {day.year}",
        f"the {ordinal(day.day)} of {month} {day.year}",
        f"{month[:3]} {day.day}, {day.year}",
        f"{day.day} {month[:3]}. {day.year}",
        f"{day:%A}, {month} {day.day}, {day.year}",
    )[rng.randrange(8)]


def _row(  # noqa: PLR0913, PLR0917 - all of a row
    rng: PartRandom, question: str, statement: str, reference: str, answer: str, meant: str, said: str, before: str
) -> Drawn:
    prediction = f"{statement.format(before + answer)}." if rng.random() < 0.6 else wrapped(rng, "", answer)
    if rng.random() < 0.15:
        prediction = " ".join([prediction, *remarks(rng, rng.randrange(1, 3))])
    return Drawn(question_style(rng, question), (reference,), prediction, meant, said)
