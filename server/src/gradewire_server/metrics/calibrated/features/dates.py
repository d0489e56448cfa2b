"""Years, months, days and centuries of a text, and where two texts contradict each other in them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import nan
from typing import Final

from gradewire_server.metrics.calibrated.features.words import NUMBER_WORDS

_MONTHS: Final = "january february march april may june july august september october november december"
_MONTH_OF: Final = {
    name: float(number) for number, month in enumerate(_MONTHS.split(), 1) for name in (month, month[:3])
}
# The verb is more frequent: "may" counts where it is written as a name.
_MAY: Final = re.compile(r"\bMay\b")
_YEAR: Final = re.compile(r"[12]\d{3}")
_FIRST_YEAR: Final = 1001
_LAST_YEAR: Final = 2099
_LAST_DAY: Final = 31
_LAST_CENTURY: Final = 21
_CENTURY: Final = 100
# Between a number and what it belongs to: "24th of October", "the 19th century".
_BETWEEN: Final = frozenset({"st", "nd", "rd", "th", "of", "the"})


@dataclass(frozen=True, slots=True)
class Dates:
    """The dates in a text.

    Attributes:
        years: Of four digits, 1001 to 2099: a thousand is a number.
        months: 1 to 12.
        days: 1 to 31, of numbers beside a month.
        centuries: 1 to 21, those of the years among them; 19 is the 19th.
    """

    years: frozenset[float]
    months: frozenset[float]
    days: frozenset[float]
    centuries: frozenset[float]


def dates_of(pieces: Sequence[str], text: str) -> Dates:
    """Finds the dates in a text.

    Args:
        pieces: Its words and numbers, folded (`pieces_of`).
        text: The raw text.
    """
    years: set[float] = set()
    months: set[float] = set()
    days: set[float] = set()
    centuries: set[float] = set()
    before = ""
    for piece in pieces:
        if piece in _BETWEEN or not piece[0].isalnum():
            continue
        if piece[0].isdecimal():
            if _YEAR.fullmatch(piece) and _FIRST_YEAR <= float(piece) <= _LAST_YEAR:
                years.add(float(piece))
            elif before in _MONTH_OF:
                days |= _counted(piece, _LAST_DAY)
        elif piece in _MONTH_OF and (piece != "may" or _MAY.search(text)):
            months.add(_MONTH_OF[piece])
            days |= _counted(before, _LAST_DAY)
        elif piece == "century":
            centuries |= _counted(before, _LAST_CENTURY)
        before = piece
    return Dates(
        frozenset(years),
        frozenset(months),
        frozenset(days),
        frozenset(centuries | {(year - 1) // _CENTURY + 1 for year in years}),
    )


def _counted(piece: str, most: int) -> set[float]:
    """The whole number from 1 to `most` that a piece is, if it is one."""
    value = float(piece) if piece.isdecimal() and len(piece) <= 2 else NUMBER_WORDS.get(piece, 0.0)
    return {value} if 1 <= value <= most else set()


def date_features(question: Dates, references: Sequence[Dates], answer: Dates) -> dict[str, float]:
    """How an answer's dates fit those of its references; NaN where no reference has any.

    Returns:
        `year_recall`, `century_recall`: largest share of a reference's that the answer has.
        `date_conflict`: how many of year, month, day and century the answer has otherwise than the reference that fits
        best; an answer that leaves some out contradicts nothing, nor does what the question says already.
        `years_beside`: how many years the answer has that neither question nor references have.
    """
    known = frozenset().union(*(reference.years for reference in references))
    dated = [reference for reference in references if reference.months or reference.centuries]
    return {
        "year_recall": _best([reference.years for reference in references], answer.years),
        "century_recall": _best([reference.centuries for reference in references], answer.centuries),
        "date_conflict": min((_conflicts(question, reference, answer) for reference in dated), default=nan),
        "years_beside": float(len(answer.years - question.years - known)),
    }


def _best(references: Sequence[frozenset[float]], answer: frozenset[float]) -> float:
    return max((len(values & answer) / len(values) for values in references if values), default=nan)


def _conflicts(question: Dates, reference: Dates, answer: Dates) -> float:
    """Kinds of which both have values, the answer besides the question's, and none in common."""
    kinds = (
        (reference.years, answer.years, question.years),
        (reference.months, answer.months, question.months),
        (reference.days, answer.days, question.days),
        (reference.centuries, answer.centuries, question.centuries),
    )
    return float(sum(bool(ours and theirs - asked) and not ours & theirs for ours, theirs, asked in kinds))
