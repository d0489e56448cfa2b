"""Draw questions about dates, years, spans and times of day, with answers in many formats."""

import datetime as dt
from random import Random

from gradewire_train.material import QUESTIONS, WORDS
from gradewire_train.texts.draw import Draw
from gradewire_train.texts.names import person_name, title
from gradewire_train.texts.numbers import in_words, ordinal

_MONTHS = WORDS["months"]
_FIRST_YEAR, _LAST_YEAR = 1500, 2024
_RECENT = 1880
_DAYS = 28
_NOON = 12
_MONTHS_A_YEAR = 12


def dated(rng: Random) -> Draw:
    """Ask for a day: "July 4, 1921", "1921-07-04"; looser answers have only month and year, or the year."""
    day = _day(rng)
    forms = day_forms(day)
    shape = rng.randrange(3)
    answer = forms[shape]
    wrong = [day_forms(other)[shape] for other in _other_days(rng, day)]
    month_year = f"{_MONTHS[day.month - 1]} {day.year}"
    looser = [str(day.year), month_year, f"in {day.year}", f"{forms[0]} ({rng.choice(('premiere', 'in cinemas'))})"]
    if rng.random() < 0.3:  # all wrong answers are years
        wrong = [str(other.year) for other in _other_days(rng, day) if other.year != day.year]
        answer, looser = month_year if rng.random() < 0.5 else answer, [str(day.year), f"in {day.year}"]
    question, statement = _filled(rng, rng.choice(QUESTIONS["date"]))
    return Draw(question, statement, answer, (*forms, f"on {forms[0]}"), tuple(looser), tuple(wrong))


def yeared(rng: Random) -> Draw:
    """Ask for a year, with answers like "1984" or "in 1984". Days, months, decades and centuries are looser answers."""
    year = _year(rng)
    month = rng.choice(_MONTHS)
    same = [f"in {year}", f"the year {year}", f"in the year {year}", f"{year} AD", f"{year} CE"]
    looser = [f"{month} {year}", f"{month} {rng.randrange(1, _DAYS)}, {year}", f"the {year // 10 * 10}s", f"c. {year}"]
    looser.append(f"the {ordinal((year - 1) // 100 + 1)} century")
    century = 100 if year < 1900 else -100
    near = [year + rng.choice((-1, 1)) * rng.randrange(2, 12), _year(rng), year + century]
    wrong = [str(each) for each in near if each // 10 != year // 10]
    answer = str(year)
    if wrong and rng.random() < 0.4:
        wrong = [f"{rng.choice(_MONTHS)} {each}" if rng.random() < 0.5 else each for each in wrong]
        wrong.append(f"{rng.choice(_MONTHS)} {rng.randrange(1, _DAYS)}, {wrong[0].split()[-1]}")
    question, statement = _filled(rng, rng.choice(QUESTIONS["year"]))
    return Draw(question, statement, answer, tuple(same), tuple(looser), tuple(wrong))


def spanned(rng: Random) -> Draw:
    """Ask for a span of years: "1914-1918", "from 1914 to 1918"; wrong answers are shifted or longer spans."""
    start = rng.randrange(_FIRST_YEAR, _LAST_YEAR - 30)
    end = start + rng.randrange(2, 30)
    same = (f"from {start} to {end}", f"{start} to {end}", f"between {start} and {end}", f"{start} until {end}")
    moved = rng.choice((-1, 1)) * rng.randrange(3, 40)
    wrong = (f"{start + moved}-{end + moved}", f"{start}-{end + 30}", f"{start - 20}-{end}")
    question, statement = _filled(rng, ("when did {person} reign", "{person} reigned {}"))
    return Draw(question, statement, f"{start}-{end}", same, (f"{end - start} years, {start}-{end}",), wrong)


def timed(rng: Random) -> Draw:
    """Ask for a time of day: "7 pm", "7:00 p.m.", "19:00"; wrong answers have other hours, or swap am and pm."""
    hour, minute = rng.randrange(1, _NOON), rng.choice((0, 0, 15, 30, 45))
    late = rng.random() < 0.5
    question, statement = rng.choice(QUESTIONS["time_of_day"])
    forms = _clock(hour, minute, late=late)
    moved = [(hour % (_NOON - 1) + 1, minute, late), (hour, minute, not late), ((hour + 3) % 11 + 1, 15, late)]
    wrong = [_clock(each, part, late=after)[0] for each, part, after in moved]
    return Draw(question, statement, forms[0], tuple(forms[1:]), (), tuple(wrong))


def _clock(hour: int, minute: int, *, late: bool) -> list[str]:
    half, dotted = ("pm", "p.m.") if late else ("am", "a.m.")
    shown = f"{hour}:{minute:02d}" if minute else str(hour)
    forms = [f"{shown} {half}", f"{hour}:{minute:02d} {dotted}", f"{hour + 12 * late:02d}:{minute:02d}"]
    if not minute:
        part = "morning" if not late else "evening" if hour > 5 else "afternoon"
        forms.append(f"{in_words(hour)} o'clock in the {part}")
    return forms


def _year(rng: Random) -> int:
    return rng.randrange(_FIRST_YEAR if rng.random() < 0.25 else _RECENT, _LAST_YEAR)


def _day(rng: Random) -> dt.date:
    return dt.date(_year(rng), rng.randrange(1, 13), rng.randrange(1, _DAYS + 1))


def _other_days(rng: Random, day: dt.date) -> list[dt.date]:
    other = _day(rng)
    found = [
        day.replace(year=day.year + rng.choice((-1, 1)) * rng.randrange(1, 20)),
        day.replace(month=other.month, day=other.day),
        day.replace(month=day.month % _MONTHS_A_YEAR + 1, day=other.day),
        day.replace(day=day.day % _DAYS + 1),
        other,
        _day(rng),
    ]
    rng.shuffle(found)
    return [each for each in found if each != day]


def day_forms(day: dt.date) -> list[str]:
    """Return a day in all formats; the first six contain the month's full or short name."""
    month = _MONTHS[day.month - 1]
    parts = {"date": day, "month": month, "short": month[:3], "rank": ordinal(day.day)}
    return [form.format(**parts) for form in WORDS["day_forms"]]


def _filled(rng: Random, asked: tuple[str, str]) -> tuple[str, str]:
    blanks = {
        "title": title(rng),
        "person": person_name(rng).usual,
        "thing": rng.choice(WORDS["institutions"]),
        "count": rng.randrange(1, 9),
        "number": rng.randrange(2, 40),
    }
    return asked[0].format(**blanks), asked[1].format("{}", **blanks)
