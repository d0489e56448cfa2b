"""Draw rows about days and dates."""

import datetime as dt
from typing import Final

from gradewire_train.graded.parts import PartRandom
from gradewire_train.graded.wording import Drawn, any_of, remarks, wrapped
from gradewire_train.material import GRADED, WORDS
from gradewire_train.texts.dates import day_forms
from gradewire_train.texts.names import person_name, title
from gradewire_train.texts.numbers import ordinal, ordinal_in_words
from gradewire_train.texts.wording import question_style

_MONTHS: Final = WORDS["months"]


def dated_sentence(rng: PartRandom, *, right: bool) -> Drawn:
    """Draw a sentence with the reference's day in a different format; a wrong answer has a different date."""
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
    event = question, statement.format("on {}")
    return _row(rng, event, reference, _form(rng, other), (day.isoformat(), other.isoformat()))


def years_about(rng: PartRandom, *, right: bool) -> Drawn | None:
    """Draw a reference with a period, and an answer with a year in this period; a wrong year is outside the period."""
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
    event = question, statement.format("in {}")
    return _row(rng, event, reference, answer, ("inside", "inside" if inside else "outside"))


def part_of_date(rng: PartRandom, *, right: bool) -> Drawn:
    """Ask for a year or month and answer with a full date; a wrong date has a different year or month."""
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
    return _row(rng, (question, statement.format("on {}")), reference, _form(rng, other), (meant, said))


def _asked(rng: PartRandom) -> tuple[str, str]:
    question, statement = rng.choice(GRADED["events"])
    blanks = {"who": person_name(rng).usual, "what": title(rng)}
    return question.format(**blanks), statement.format("{}", **blanks)


def _form(rng: PartRandom, day: dt.date) -> str:
    usual = day_forms(day)
    month = _MONTHS[day.month - 1]
    further = [f"{day.day} {month[:3]}. {day.year}", f"{day:%A}, {usual[0]}"]
    return any_of(rng, [*usual[:6], *further])


def _row(
    rng: PartRandom, event: tuple[str, str], reference: str, answer: str, meant_and_said: tuple[str, str]
) -> Drawn:
    question, statement = event
    prediction = f"{statement.format(answer)}." if rng.random() < 0.6 else wrapped(rng, "", answer)
    if rng.random() < 0.15:
        prediction = " ".join([prediction, *remarks(rng, rng.randrange(1, 3))])
    return Drawn(question_style(rng, question), (reference,), prediction, *meant_and_said)
