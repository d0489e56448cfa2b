"""Numbers, years and months of a text as values, so that "two" is 2 and "1951-52" is not "195152"."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from math import nan
from typing import Final

import numpy as np

from gradewire_server.metrics.calibrated_features_words import folded

_MAX_VALUES: Final = 256
"""Numbers of a text that are read; of more, only the first tokens count."""
_MAX_TOKENS: Final = 4096
_MAX_VALUE: Final = 1e30
_MAX_DIGITS: Final = 18

_SMALL: Final = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty"
)
# Not "second", which is a unit more often.
_ORDINAL: Final = (
    "first - third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth "
    "sixteenth seventeenth eighteenth nineteenth twentieth"
)
_TENS: Final = "twenty thirty forty fifty sixty seventy eighty ninety"
_WORDS: Final[dict[str, float]] = {
    **{word: float(value) for value, word in enumerate(_SMALL.split())},
    **{word: float(value) for value, word in enumerate(_ORDINAL.split(), 1)},
    **{word: 10.0 * value for value, word in enumerate(_TENS.split(), 2)},
    "once": 1.0,
    "twice": 2.0,
    "double": 2.0,
    "pair": 2.0,
    "triple": 3.0,
    "dozen": 12.0,
    "half": 0.5,
}
_FACTORS: Final = {"hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}
_MONTHS: Final = (
    "january february march april may june july august september october november december".split()  # noqa: SIM905 - readable
)
# "may" is a verb more often: it counts where it is written as a name.
_MONTH_OF: Final = {name: number for number, month in enumerate(_MONTHS, 1) for name in (month, month[:3])}
_MAY: Final = re.compile(r"\bMay\b")
_TOKEN: Final = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?|[^\W\d_]+")
_YEAR: Final = re.compile(r"[12]\d{3}")
_FIRST_YEAR: Final = 1000
_LAST_YEAR: Final = 2099
_TEEN: Final = 20.0


@dataclass(frozen=True, slots=True)
class Values:
    """What a text counts and dates.

    Attributes:
        numbers: All values, years and days among them.
        years: Those of four digits, 1000 to 2099.
        months: 1 to 12.
    """

    numbers: frozenset[float]
    years: frozenset[float]
    months: frozenset[int]


NOTHING: Final = Values(frozenset(), frozenset(), frozenset())


def values_of(text: str) -> Values:
    """Reads a text of bounded length: digits (with thousands' commas and decimals), English number words, months."""
    numbers: dict[float, None] = {}
    years, months = set(), set()
    held: float | None = None
    for match in islice(_TOKEN.finditer(folded(text)), _MAX_TOKENS):
        piece = match.group()
        before, held = held, _continued(held, piece)
        if before is not None and (held is None or not _grows(before, piece)):
            numbers[before] = None
        if _YEAR.fullmatch(piece) and _FIRST_YEAR <= float(piece) <= _LAST_YEAR:
            years.add(float(piece))
        if piece in _MONTH_OF and (piece != "may" or _MAY.search(text)):
            months.add(_MONTH_OF[piece])
    if held is not None:
        numbers[held] = None
    return Values(frozenset(islice(numbers, _MAX_VALUES)), frozenset(years), frozenset(months))


def _continued(held: float | None, piece: str) -> float | None:
    """The number that is being read behind a piece; None behind a word that is none."""
    if piece[0].isdecimal():
        return float(piece.replace(",", "")[:_MAX_DIGITS])
    if piece in _FACTORS:
        return min(_MAX_VALUE, (1.0 if held is None else held) * _FACTORS[piece])
    if piece in _WORDS:
        return held + _WORDS[piece] if held is not None and _grows(held, piece) else _WORDS[piece]
    return held if piece == "and" and held is not None and held >= _FACTORS["hundred"] else None


def _grows(held: float, piece: str) -> bool:
    """Whether a piece goes on with the number that is being read: "twenty" "one", "three" "hundred", "and"."""
    if piece in _FACTORS or piece == "and":
        return True
    return held >= _TEEN and held % 10 == 0 and 0 < _WORDS.get(piece, 0) < 10


def number_features(question: Values, references: Sequence[Values], answer: Values) -> dict[str, float]:
    """How the numbers of an answer fit those of its references; NaN where no reference has any.

    Returns:
        `number_recall`, `year_recall`, `month_recall`: largest share of a reference's values that the answer has.
        `number_near`: how close the closest number comes, 1 for equal.
        `number_conflict`: 1 where the answer has none of the references' numbers, but others that nobody asked for.
        `numbers_beside`, `years_beside`: how many of those.
    """
    known = frozenset().union(*(reference.numbers for reference in references))
    beside = answer.numbers - question.numbers - known
    years = answer.years - question.years - frozenset().union(*(reference.years for reference in references))
    return {
        "number_recall": _best(references, lambda values: values.numbers, answer.numbers),
        "year_recall": _best(references, lambda values: values.years, answer.years),
        "month_recall": _best(references, lambda values: values.months, answer.months),
        "number_near": _near(references, answer),
        "number_conflict": float(bool(beside) and not known & answer.numbers) if known else nan,
        "numbers_beside": float(len(beside)),
        "years_beside": float(len(years)),
    }


def _best(references: Sequence[Values], kind: Callable[[Values], frozenset[float]], answer: frozenset[float]) -> float:
    shares = [len(kind(values) & answer) / len(kind(values)) for values in references if kind(values)]
    return max(shares, default=nan)


def _near(references: Sequence[Values], answer: Values) -> float:
    """Largest 1 - |a - b| / max(a, b), all numbers being at least 0."""
    ours = np.array(sorted(answer.numbers))
    theirs = np.array(sorted(frozenset().union(*(reference.numbers for reference in references)))[:_MAX_VALUES])
    if not len(ours) or not len(theirs):
        return nan
    larger = np.maximum.outer(ours, theirs)
    apart = np.abs(np.subtract.outer(ours, theirs)) / np.where(larger, larger, 1.0)
    return float(1 - apart.min())
