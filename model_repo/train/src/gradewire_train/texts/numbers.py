"""Draw questions about numbers (counts, amounts and ranks)."""

from random import Random
from typing import Final

from gradewire_train.material import QUESTIONS, WORDS
from gradewire_train.texts.draw import Draw

_ONES: Final[tuple[str, ...]] = WORDS["ones"]
_TENS: Final[tuple[str, ...]] = WORDS["tens"]
_NAMED_POWERS: Final = ((1_000_000, "million"), (1_000, "thousand"), (100, "hundred"))
_ROMAN: Final = ((10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I"))
_IRREGULAR: Final = WORDS["irregular_ranks"]
_LIMIT: Final = 1_000_000_000

_PAIRS = ("a pair", "a couple", "a pair of {things}", "both", "a couple of {things}")
_SMALL = 12
_COUNT_RANGES = ((1, 12), (1, 12), (1, 12), (10, 100), (100, 1_000), (1_000, 10_000), (10_000, 5_000_000))
_ROUND = 10_000
_LONG = 100_000
_LARGE = 1_000


def in_words(value: int) -> str:
    """Return the number in words, without "and": 1024 is "one thousand twenty-four".

    Raises:
        ValueError: The number is negative, or at least a billion.
    """
    if not 0 <= value < _LIMIT:
        raise ValueError(f"{value} is not between 0 and {_LIMIT - 1}")
    for size, name in _NAMED_POWERS:
        if value >= size:
            rest = f" {in_words(value % size)}" if value % size else ""
            return f"{in_words(value // size)} {name}{rest}"
    if value < len(_ONES):
        return _ONES[value]
    return _TENS[value // 10] + (f"-{_ONES[value % 10]}" if value % 10 else "")


def digits(value: int) -> str:
    """Return the number in digits with commas between thousands: "12,500"."""
    return f"{value:,}"


def ordinal(value: int) -> str:
    """Return the rank in digits: "21st", "112th"."""
    teen = 10 <= value % 100 <= 20
    ending = "th" if teen else {1: "st", 2: "nd", 3: "rd"}.get(value % 10, "th")
    return f"{value}{ending}"


def ordinal_in_words(value: int) -> str:
    """Return the rank in words: "twenty-first"."""
    head, dash, last = in_words(value).rpartition("-" if value % 10 and value > len(_ONES) else " ")
    if last in _IRREGULAR:
        last = _IRREGULAR[last]
    else:
        last = f"{last.removesuffix('y')}ieth" if last.endswith("y") else f"{last}th"
    return f"{head}{dash}{last}"


def roman(value: int) -> str:
    """Return a small number in Roman numerals: "XIV"."""
    found = ""
    for size, figure in _ROMAN:
        while value >= size:
            found += figure
            value -= size
    return found


def counted(rng: Random) -> Draw:
    """Ask for a count: "2", "two", "a pair", "2.0"; wrong answers are near and far numbers."""
    low, high = rng.choice(_COUNT_RANGES)
    value = rng.randrange(low, high)
    if value >= _ROUND:
        value -= value % (1_000 if rng.random() < 0.7 else 100)
    things = rng.choice(WORDS["counted_things"])
    question, statement = rng.choice(QUESTIONS["count"])
    same = [*_forms(value), f"{digits(value)} {things}"]
    if value < _SMALL:
        same.append(f"{in_words(value)} {things}")
    if value == 2:
        same += [form.format(things=things) for form in _PAIRS]
    looser = [f"{prefix} {digits(value)}" for prefix in ("about", "approximately", "around", "exactly")]
    answer = rng.choice(_forms(value)[:3])
    wrong = _written_alike(rng, answer, _near(rng, value))
    if rng.random() < 0.15:
        answer = f"{answer} {things}"
        wrong = tuple(each if rng.random() < 0.4 else f"{each} {things}" for each in wrong)
    stated = statement.replace("{things}", things)
    if value == 1:
        return Draw(f"how many {things}", "The number is {}", answer, (*same, "a single one", "only one"), (), wrong)
    return Draw(question.format(things=things), stated, answer, tuple(same), tuple(looser), wrong)


def measured(rng: Random) -> Draw:
    """Ask for an amount. The unit is written out, abbreviated or missing; wrong answers are other numbers."""
    question, unit, short, other = rng.choice(QUESTIONS["measure"])
    value = rng.choice((rng.randrange(2, 20), rng.randrange(2, 100), rng.randrange(100, 3_000)))
    part = rng.randrange(1, 10) if rng.random() < 0.2 else 0
    written = f"{digits(value)}.{part}" if part else digits(value)
    glue = "" if short in {"%", "°C", "m", "km", "kg", "h"} and rng.random() < 0.6 else " "
    same = [f"{written} {unit}", f"{written}{glue}{short}", f"{written} {other}", written]
    if not part:
        same += [f"{in_words(value)} {unit}", in_words(value), f"{value} {unit}"]
    wrong = [digits(near) for near in _near(rng, value)]
    shape = rng.choice((f"{{}} {unit}", f"{{}}{glue}{short}", f"{{}} {other}"))
    looser = [f"about {written} {unit}", f"approximately {written} {unit}", f"over {written} {unit}"]
    wrong_written = tuple(shape.format(each) for each in wrong)
    return Draw(question, "The answer is {}", shape.format(written), tuple(same), tuple(looser), wrong_written)


def ranked(rng: Random) -> Draw:
    """Ask for a rank: "3rd", "third", "number 3", "III"; wrong answers are other ranks."""
    value = rng.randrange(1, 30)
    question, statement = rng.choice(QUESTIONS["rank"])
    same = [ordinal(value), ordinal_in_words(value), f"the {ordinal(value)}", f"the {ordinal_in_words(value)}"]
    if "century" not in question:
        same += [f"number {value}", str(value)]
    if "amendment" in question:
        same.append(roman(value))
    answer = rng.choice(same[:2])
    write = ordinal if answer == same[0] else ordinal_in_words
    wrong = tuple(write(near) for near in _near(rng, value) if near > 0)
    return Draw(question, statement, answer, tuple(same), (), wrong)


def _forms(value: int) -> list[str]:
    spelled = in_words(value) if value < _ROUND or value % _ROUND == 0 else str(value)
    forms = [str(value), spelled, digits(value), f"{value}.0" if value < _LARGE else digits(value)]
    million = 1_000_000
    if value >= _LONG and value % 100_000 == 0:
        forms.append(f"{value / million:g} million")
    return forms


def _near(rng: Random, value: int) -> list[int]:
    """Return a near number, a number of similar size, and one with a changed digit."""
    step = max(1, value // 10)
    found = [value + rng.choice((-1, 1)) * rng.randrange(1, step + 1), value + rng.randrange(2, 9) * step]
    if value >= 10:
        text = str(value)
        at = rng.randrange(len(text))
        digit = rng.choice([each for each in "123456789" if each != text[at]])
        found.append(int(text[:at] + digit + text[at + 1 :]))
    else:
        found.append(rng.randrange(0, _SMALL))
    return [each for each in found if each != value and each >= 0]


def _written_alike(rng: Random, answer: str, values: list[int]) -> tuple[str, ...]:
    spelled = answer[:1].isalpha()
    return tuple(
        in_words(value) if spelled != (rng.random() < 0.25) and value < _LONG else digits(value) for value in values
    )
