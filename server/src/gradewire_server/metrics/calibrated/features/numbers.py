"""Numbers of a text as values: "two" is 2, "1,000" is 1000, "1951-52" is not "195152"."""

import re
from collections.abc import Sequence
from itertools import islice
from math import nan
from typing import Final

import numpy as np

from gradewire_server.metrics.calibrated.features.words import NUMBER_WORDS, folded

_MAX_VALUES: Final = 256
"""Numbers of a text that are compared, the first ones."""
_MAX_PIECES: Final = 4096
_MAX_VALUE: Final = 1e30
_MAX_DIGITS: Final = 18
_FACTORS: Final = {"hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}
# Punctuation too, at which a number ends: "twenty. One of" is not 21. Not the hyphen, nor the comma, of numbers.
_PIECE: Final = re.compile(r"\d+(?:\.\d+)?|[^\W\d_]+|[^\w\s,-]")
_TEEN: Final = 20.0


def pieces_of(text: str) -> list[str]:
    """Words, numbers (with decimals) and punctuation of a text, folded, the first 4 096."""
    return [match.group() for match in islice(_PIECE.finditer(folded(text)), _MAX_PIECES)]


def numbers_of(pieces: Sequence[str]) -> frozenset[float]:
    """Values of the numbers in a text, as digits or English number words; years and days are numbers too."""
    found: dict[float, None] = {}
    held: float | None = None
    for piece in pieces:
        before, held = held, _continued(held, piece)
        if before is not None and (held is None or not _grows(before, piece)):
            found[before] = None
    if held is not None:
        found[held] = None
    return frozenset(islice(found, _MAX_VALUES))


def _continued(held: float | None, piece: str) -> float | None:
    """The number that is being read behind a piece; None behind a word that is none."""
    if piece[0].isdecimal():
        return float(piece[:_MAX_DIGITS])
    if piece in _FACTORS:
        return min(_MAX_VALUE, (1.0 if held is None else held) * _FACTORS[piece])
    if piece in NUMBER_WORDS:
        return held + NUMBER_WORDS[piece] if held is not None and _grows(held, piece) else NUMBER_WORDS[piece]
    return held if piece == "and" and held is not None and held >= _FACTORS["hundred"] else None


def _grows(held: float, piece: str) -> bool:
    """Whether a piece goes on with the number that is being read: "twenty" "one", "three" "hundred", "and"."""
    if piece in _FACTORS or piece == "and":
        return True
    return held >= _TEEN and held % 10 == 0 and 0 < NUMBER_WORDS.get(piece, 0) < 10


def number_features(
    question: frozenset[float], references: Sequence[frozenset[float]], answer: frozenset[float]
) -> dict[str, float]:
    """How the numbers of an answer fit those of its references; NaN where no reference has any.

    Returns:
        `number_recall`: largest share of a reference's numbers that the answer has.
        `number_near`: how close the closest number comes, 1 for equal; years are left out, which are all alike.
        `numbers_beside`: how many others it has that the question does not.
    """
    known = frozenset().union(*references)
    beside = answer - question - known
    return {
        "number_recall": max((len(each & answer) / len(each) for each in references if each), default=nan),
        "number_near": _near(_no_years(known), _no_years(answer)),
        "numbers_beside": float(len(beside)),
    }


def _no_years(numbers: frozenset[float]) -> list[float]:
    return sorted(number for number in numbers if not 1000 < number <= 2099 or number % 1)[:_MAX_VALUES]


def _near(known: list[float], answer: list[float]) -> float:
    """Largest 1 - |a - b| / max(a, b), all numbers being at least 0."""
    if not known or not answer:
        return nan
    ours, theirs = np.array(answer), np.array(known)
    larger = np.maximum.outer(ours, theirs)
    apart = np.abs(np.subtract.outer(ours, theirs)) / np.where(larger, larger, 1.0)
    return float(1 - apart.min())
