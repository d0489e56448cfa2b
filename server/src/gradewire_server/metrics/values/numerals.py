"""Parse numbers in tokens: digits, powers, fractions, English number words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Final
from unicodedata import combining, normalize

from gradewire_server.metrics.values.tokens import (
    VOCABULARY,
    Phrases,
    Token,
    adjacent,
    lower_at,
    number_at,
    phrase_at,
    phrases,
    tokens_are,
)

_WORDS: Final = VOCABULARY["numerals"]

SMALL: Final = {word: value for value, word in enumerate(_WORDS["small"].split())}
"""Values of "zero" to "nineteen"."""
TENS: Final = {**{word: 10 * value for value, word in enumerate(_WORDS["tens"].split(), 2)}, "fourty": 40}
"""Values of "twenty" to "ninety"."""
SCALES: Final = _WORDS["scales"] | {f"{word}s": _WORDS["scales"][word] for word in _WORDS["scales_with_plural"].split()}
"""Words that multiply the preceding number, with the words' factors: "million", "dozen"."""
ORDINALS: Final = {
    **{word: value for value, word in enumerate(_WORDS["small_ordinals"].split())},
    **{f"{word[:-1]}ieth": value for word, value in TENS.items()},
    "hundredth": 100,
    "thousandth": 1000,
    "millionth": 1_000_000,
}
"""Values of single words from "zeroth" to "millionth"."""
ORDINAL_ENDINGS: Final = frozenset(_WORDS["ordinal_endings"].split())
NUMBERS_ALONE: Final = _WORDS["numbers_alone"]
"""Values of "twice", "none" and the like."""
DURATIONS: Final = frozenset(_WORDS["durations"].split())
"""Units of time that an article may count: "an hour"."""

_PLAIN_SCALES: Final = _WORDS["plain_scales"]
_DENOMINATORS: Final = {"half": 2, "halves": 2, "quarter": 4, "quarters": 4} | {
    f"{word}{plural}": value for word, value in ORDINALS.items() if value > 2 for plural in ("", "s")
}
_BEFORE_DURATIONS: Final = frozenset({"", *_WORDS["before_durations"].split()})
_TWO_LETTERS: Final = str.maketrans({"\u00df": "ss", "\u00f6": "oe", "\u00fc": "ue"})
_BEFORE_PRONOUN: Final = frozenset(_WORDS["before_pronoun"].split())


def _german() -> dict[str, int]:
    words = _WORDS["german"]
    small, tens = words["small"].split(), words["tens"].split()
    units = ["ein", *small[2:10]]
    above = {f"{unit}und{ten}": 10 * n + one for n, ten in enumerate(tens, 2) for one, unit in enumerate(units, 1)}
    return {word: value for value, word in enumerate(small)} | {ten: 10 * n for n, ten in enumerate(tens, 2)} | above


def _french() -> dict[str, int]:
    words = _WORDS["french"]
    small, tens = words["small"].split(), dict(enumerate(words["tens"].split(), 2))
    found = {word: value for value, word in enumerate(small)} | {"quatre-vingts": 80}
    for n, ten in tens.items():
        first = 10 if ten == tens.get(n - 1) else 0  # 70 is 60 and 10
        for value, word in enumerate(small[first : first + 10]):
            joints = ("-", " et ", "-et-") if value == 1 else ("-",)
            forms = (word, "une") if word == "un" else (word,)
            for form in forms:
                found |= {f"{ten}{joint}{form}" if first + value else ten: 10 * n + value for joint in joints}
    for ten, value in words["more_tens"].items():  # in Belgium and Switzerland
        found |= {ten: value} | {f"{ten}-{small[one]}": value + one for one in range(2, 10)}
        found |= {f"{ten} et un": value + 1, f"{ten}-et-un": value + 1}
    return found


def _spanish() -> dict[str, int]:
    words = _WORDS["spanish"]
    small, tens = words["small"].split(), words["tens"].split()
    found = {word: value for value, word in enumerate([*small, tens[0], *words["twenties"].split()])}
    above = {f"{ten} y {small[one]}": 10 * n + one for n, ten in enumerate(tens[1:], 3) for one in range(1, 10)}
    return found | {ten: 10 * n for n, ten in enumerate(tens, 2)} | above


def _without_accents(word: str) -> str:
    """Return a word as it is written without accents: "dreissig", "zwoelf", "veintidos"."""
    letters = normalize("NFD", word.translate(_TWO_LETTERS))
    return "".join(letter for letter in letters if not combining(letter))


def _numbers_elsewhere(*, ambiguous: bool = False) -> Phrases[int]:
    """Return the German, French and Spanish numbers below 100, the longest first.

    With `ambiguous`, return words too that alone mean something else.
    """
    found = {
        " ".join(form.replace("-", " - ").split()): value
        for language, numbers in (("german", _german()), ("french", _french()), ("spanish", _spanish()))
        for word, value in numbers.items()
        if ambiguous or word not in _WORDS[language]["words_too"].split()
        for form in (word, _without_accents(word))
    }
    return phrases(dict(sorted(found.items(), key=lambda item: -item[0].count(" "))))


NUMBERS_ELSEWHERE: Final = _numbers_elsewhere()
"""German, French and Spanish numbers below 100, by their first word."""
_BEHIND_HUNDREDS: Final = _numbers_elsewhere(ambiguous=True)
_SPANISH_HUNDREDS: Final = {
    word: 100 * value for value, word in enumerate(_WORDS["spanish"]["hundreds"].split(), 1)
} | {"cien": 100}
_SMALL_GERMAN: Final = {form: value for word, value in _german().items() for form in (word, _without_accents(word))} | {
    "ein": 1
}
_DENOMINATORS_ELSEWHERE: Final[Mapping[str, int]] = _WORDS["parts_elsewhere"]["denominators"]
_ARTICLES_ELSEWHERE: Final = frozenset(_WORDS["parts_elsewhere"]["articles"].split())
_HALVES_ELSEWHERE: Final = frozenset(_WORDS["parts_elsewhere"]["halves"].split())
_MAX_POWER: Final = 300
_MAX_VALUE: Final = 1e300
_MAX_NUMBER_WORDS: Final = 32
_YEARS: Final = range(1000, 2100)


@dataclass(frozen=True, slots=True)
class Numeral:
    """A number without a unit, at least 0.

    Attributes:
        place: The place value of the last significant digit; 0 if the number is exact.
        end: The index of the token after the number.
        fraction: True if the number is a part of a whole: "3/4", "two thirds", "1 in 5".
    """

    value: float
    place: float
    end: int
    words: bool = False
    fraction: bool = False


def numeral_at(tokens: Sequence[Token], at: int) -> Numeral | None:
    """Return the number that begins at a token, or None."""
    token = tokens[at]
    found = _digits(tokens, at) if token.number is not None else _words(tokens, at) if token.word else None
    return found if found is None or (isfinite(found.value) and found.value <= _MAX_VALUE) else None


def _digits(tokens: Sequence[Token], at: int) -> Numeral | None:
    value, end = tokens[at].number, at + 1
    if value is None or (adjacent(tokens, end) and lower_at(tokens, end) in ORDINAL_ENDINGS):
        return None
    if lower_at(tokens, end) == "^":
        return _power(tokens, at)
    if lower_at(tokens, end) in {"*", "x"} and tokens_are(tokens, end + 1, "10", "^"):
        power = _power(tokens, end + 1)
        return power and Numeral(value * power.value, tokens[at].place * power.value, power.end)
    if (found := _fraction(tokens, end, value) or _chance(tokens, end, value)) is not None:
        return found
    scale, end = _scale(tokens, end)
    return _with_half(tokens, end, Numeral(value * scale, tokens[at].place * scale, end), scale)


def _fraction(tokens: Sequence[Token], end: int, value: float) -> Numeral | None:
    """Parse the rest of a fraction after its first number: "3/4", "3 1/2". Two slashes are a date."""
    if lower_at(tokens, end) == "/" and (below := number_at(tokens, end + 1)) and lower_at(tokens, end + 2) != "/":
        return Numeral(value / below, 0.0, end + 2, fraction=True)
    above, below = number_at(tokens, end), number_at(tokens, end + 2)
    if above is not None and below and lower_at(tokens, end + 1) == "/" and above < below and value % 1 == 0:
        return Numeral(value + above / below, 0.0, end + 3)
    return None


def _power(tokens: Sequence[Token], at: int) -> Numeral | None:
    end = at + 2
    bracket = lower_at(tokens, end) == "("
    end += bracket
    sign = -1 if lower_at(tokens, end) == "-" else 1
    end += lower_at(tokens, end) in {"-", "+"}
    base, power = tokens[at].number, number_at(tokens, end)
    if base is None or power is None or power % 1 or power > _MAX_POWER:
        return None
    if bracket and lower_at(tokens, end + 1) != ")":
        return None
    end += 1 + bracket
    try:
        value = base ** (sign * power)
    except (OverflowError, ZeroDivisionError):
        return None
    return Numeral(value, 0.0 if base != 10 else value, end)


def _scale(tokens: Sequence[Token], at: int) -> tuple[float, int]:
    """Return the factor of the scale words ("million", "k") at an index, and the index after these words.

    If there are no scale words, return 1 and the same index.
    """
    scale = 1.0
    while (factor := SCALES.get(lower_at(tokens, at))) is not None and scale * factor <= _MAX_VALUE:
        scale, at = scale * factor, at + 1
    if scale == 1 and adjacent(tokens, at) and tokens[at].text == "M":  # "350M parameters"
        return 1e6, at + 1
    if scale == 1 and adjacent(tokens, at) and (factor := _PLAIN_SCALES.get(lower_at(tokens, at))) is not None:
        kelvin = tokens[at].text == "K" and "." in tokens[at - 1].text
        return (scale, at) if kelvin else (factor, at + 1)
    return scale, at


def _chance(tokens: Sequence[Token], at: int, value: float) -> Numeral | None:
    """Parse the rest of "1 in 5" or "3 out of 4" after the first number."""
    end = at + 1 if lower_at(tokens, at) == "in" else at + 2 if tokens_are(tokens, at, "out", "of") else 0
    if not end or end >= len(tokens):
        return None
    token = tokens[end]
    whole = token.number if token.number is not None else float(SMALL.get(token.lower, TENS.get(token.lower, 0)))
    if (
        whole <= value
        or value < 1
        or (int(whole) in _YEARS and whole % 1000)
        or (adjacent(tokens, end + 1) and (tokens[end + 1].word or lower_at(tokens, end + 1) == "/"))
    ):
        return None
    return Numeral(value / whole, 0.0, end + 1, fraction=True)


def _words(tokens: Sequence[Token], at: int) -> Numeral | None:
    lower = tokens[at].lower
    if lower in SMALL or lower in TENS:
        pronoun = lower == "one" and lower_at(tokens, at - 1) in _BEFORE_PRONOUN
        return None if pronoun else _cardinal(tokens, at)
    if lower in NUMBERS_ALONE:
        return Numeral(NUMBERS_ALONE[lower], 1.0, at + 1, words=True)
    if lower in {"a", "an"}:
        return _article(tokens, at)
    if lower in _HALVES_ELSEWHERE:
        return Numeral(0.5, 0.0, at + 1, words=True, fraction=True)
    if lower in _ARTICLES_ELSEWHERE:
        below = _DENOMINATORS_ELSEWHERE.get(lower_at(tokens, at + 1))
        return None if below is None else Numeral(1 / below, 0.0, at + 2, words=True, fraction=True)
    return _half(tokens, at) if lower == "half" else _elsewhere(tokens, at)


def _elsewhere(tokens: Sequence[Token], at: int) -> Numeral | None:
    """Parse a German, French or Spanish number. A capital within a text makes it a name: "in Trois-Rivières"."""
    found = phrase_at(tokens, at, NUMBERS_ELSEWHERE) or _hundreds_alone(tokens, at)
    if found is None and (compound := _german_compound(tokens[at].lower)) is not None:
        found = compound, at + 1
    if found is None or (at > 0 and not tokens[at].text.islower()):
        return None
    value, end = found
    if (below := _DENOMINATORS_ELSEWHERE.get(lower_at(tokens, end))) is not None:
        return Numeral(value / below, 0.0, end + 1, words=True, fraction=True)
    value, end = _with_hundreds(tokens, value, end)
    scale, end = _scale(tokens, end)
    value = int(value * scale)
    name = lower_at(tokens, end) == "-" and adjacent(tokens, end) and adjacent(tokens, end + 1)
    return None if name else Numeral(float(value), _place(value), end, words=True)


def _hundreds_alone(tokens: Sequence[Token], at: int) -> tuple[int, int] | None:
    """Return the value of a Spanish word for hundreds, or of a French "cent" before a number."""
    if (hundreds := _SPANISH_HUNDREDS.get(lower_at(tokens, at))) is not None:
        return hundreds, at + 1
    if lower_at(tokens, at) == "cent" and phrase_at(tokens, at + 1, _BEHIND_HUNDREDS) is not None:
        return 100, at + 1
    return None


def _with_hundreds(tokens: Sequence[Token], value: int, end: int) -> tuple[int, int]:
    """Add the words behind a French or Spanish number below 1000: "cents vingt" in "deux cents vingt"."""
    if 1 < value < 10 and lower_at(tokens, end) in {"cent", "cents"}:
        value, end = 100 * value, end + 1
    if value >= 100 and value % 100 == 0 and (rest := phrase_at(tokens, end, _BEHIND_HUNDREDS)) is not None:
        value, end = value + rest[0], rest[1]
    return value, end


def _german_compound(word: str) -> int | None:
    """Return the value of a German number from 100 on in one word ("zweihundertfünf"), or None."""
    total = 0
    for scale, factor in (("tausend", 1_000), ("hundert", 100)):
        before, found, word = word.partition(scale) if scale in word else ("", "", word)
        if found:
            amount = 1 if not before else _german_compound(before) or _SMALL_GERMAN.get(before)
            if amount is None:
                return None
            total += amount * factor
    if not total:
        return None
    rest = _SMALL_GERMAN.get(word.removeprefix("und")) if word else 0
    return None if rest is None else total + rest


def _cardinal(tokens: Sequence[Token], at: int) -> Numeral | None:
    value, end = _counted(tokens, at)
    if end < 0:
        return None
    whole = Numeral(value, _place(value), end, words=True)
    return _part(tokens, end, value) or _chance(tokens, end, value) or _with_half(tokens, end, whole, 1.0)


def _place(value: float) -> float:
    place = 1.0
    while value >= 10 * place and value % (10 * place) == 0:
        place *= 10
    return place


def _half(tokens: Sequence[Token], at: int) -> Numeral:
    end = at + 1
    if lower_at(tokens, end) in {"a", "an"} and lower_at(tokens, end + 1) in SCALES:
        value = SCALES[lower_at(tokens, end + 1)] / 2
        return Numeral(value, _place(value), end + 2, words=True)
    return Numeral(0.5, 0.0, end + (lower_at(tokens, end) in {"a", "an"}), words=True, fraction=True)


def _article(tokens: Sequence[Token], at: int) -> Numeral | None:
    following = lower_at(tokens, at + 1)
    if following in SCALES:
        value, end = _counted(tokens, at)
        return _with_half(tokens, end, Numeral(value, _place(value), end, words=True), SCALES[following])
    if following == "couple":
        return Numeral(2.0, 1.0, at + 2 + (lower_at(tokens, at + 2) == "of"), words=True)
    behind = at + 2
    title = at == 0 and behind < len(tokens) and tokens[behind].word  # "A Day in the Life"
    if following in DURATIONS and lower_at(tokens, at - 1) in _BEFORE_DURATIONS and not title:
        return Numeral(1.0, 1.0, at + 1, words=True)
    alone = behind >= len(tokens) or not tokens[behind].word or tokens[behind].lower in {"of", "percent"}
    if following in {"half", "quarter"} or (following in _DENOMINATORS and alone):
        return Numeral(1 / _DENOMINATORS[following], 0.0, behind, words=True, fraction=True)
    return None


def _part(tokens: Sequence[Token], at: int, value: float) -> Numeral | None:
    """Parse a fraction after its numerator `value`: "quarters" in "three quarters", "-thirds" in "two-thirds"."""
    at += lower_at(tokens, at) == "-"
    denominator = _DENOMINATORS.get(lower_at(tokens, at))
    if denominator is None or (lower_at(tokens, at) in ORDINALS and value != 1) or value >= denominator * 10:
        return None
    return Numeral(value / denominator, 0.0, at + 1, words=True, fraction=True)


def _with_half(tokens: Sequence[Token], at: int, numeral: Numeral, scale: float) -> Numeral:
    """Parse what is behind "and" in "two and a half" and "two and three-quarters"."""
    above = {"a": 1, "one": 1}.get(lower_at(tokens, at + 1)) or SMALL.get(lower_at(tokens, at + 1), 0)
    if lower_at(tokens, at) != "and" or not 0 < above < 10:
        return numeral
    behind = at + 2 + (lower_at(tokens, at + 2) == "-")
    name = lower_at(tokens, behind)
    below = {"half": 2, "quarter": 4, "third": 3}.get(name) if above == 1 else _DENOMINATORS.get(name)
    if below is None or above >= below or (above > 1 and name in ORDINALS):
        return numeral
    factor, end = _scale(tokens, behind + 1)
    value = (numeral.value / scale + above / below) * scale * factor
    return Numeral(value, 0.0 if below in {3, 6, 7, 9} else value * 1e-9, end, words=numeral.words)


def _counted(tokens: Sequence[Token], at: int) -> tuple[float, int]:
    """Return the value of consecutive number words and the index after them. The index is -1 if an ordinal follows."""
    total = current = 0.0
    last = float("inf")  # the magnitude of the last word; the next word's magnitude must be smaller
    end = at
    while end < min(len(tokens), at + _MAX_NUMBER_WORDS):
        step = end + (lower_at(tokens, end) == "-" and end > at and adjacent(tokens, end) and adjacent(tokens, end + 1))
        step += lower_at(tokens, end) == "and" and end > at and last >= 100
        lower = lower_at(tokens, step)
        if lower in SMALL and ((last == 10 and 0 < SMALL[lower] < 10) or last >= 100):
            current, last = current + SMALL[lower], 1.0
        elif lower in TENS and last >= 100:
            current, last = current + TENS[lower], 10.0
        elif lower in SCALES and (end > at or lower != "hundreds"):
            scale = SCALES[lower]
            if scale < 1e3:
                current, last = (current or 1.0) * scale, 100.0
            else:
                total, current, last = min(_MAX_VALUE, total + (current or 1.0) * scale), 0.0, scale
        elif end == at and lower in {"a", "an"}:
            current = 0.0
        else:
            if step > end and lower in ORDINALS and last in {10.0, 100.0} and lower_at(tokens, end) != "and":
                return 0.0, -1
            break
        end = step + 1
    return total + current, end
