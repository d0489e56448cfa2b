"""Whether a value of an answer says what one of a reference does, or stands in its place."""

import re
from dataclasses import dataclass, replace
from typing import Final

from gradewire_server.metrics.text.values.amounts.quantities import Quantity, contradicts
from gradewire_server.metrics.text.values.dates.clock import Time
from gradewire_server.metrics.text.values.dates.dates import Asked, Date
from gradewire_server.metrics.text.values.formulas.formula import Formula
from gradewire_server.metrics.text.values.formulas.relations import Relation
from gradewire_server.metrics.text.values.reading import values_of
from gradewire_server.metrics.text.values.signs.locants import Locant
from gradewire_server.metrics.text.values.signs.ordinals import Ordinal
from gradewire_server.metrics.text.values.signs.symbols import Symbol
from gradewire_server.metrics.text.values.standing import DENIES, WORD
from gradewire_server.metrics.text.values.value import Content, Value

MAX_QUESTION: Final = 2_048
"""Characters of a question that are read."""
_ASKED: Final = re.compile(r"\b(?:what|which|in)\s+(year|month|day|date)\b", re.IGNORECASE)
_FINENESS: Final = {"year": Asked.YEAR, "month": Asked.MONTH, "day": Asked.DAY, "date": Asked.DAY}
_COUNTED: Final = re.compile(r"\bhow many ([^\W\d_]+)", re.IGNORECASE)
_RISE: Final = re.compile(r"\b(?:increas|ris|rose|grow|grew|gain|change)\w*", re.IGNORECASE)
_FALL: Final = re.compile(r"\b(?:decreas|declin|drop|fall|fell|los[st]|reduc|change)\w*", re.IGNORECASE)
_SCALES_ASKED: Final = re.compile(
    r"(?:\bin (?:the )?|\b(?:USD|EUR|GBP|INR|US|U\.S\.|dollars?|euros?) ?\$? ?|[$\u20ac\u00a3] ?)"
    r"(thousand|million|billion)s?\b",
    re.IGNORECASE,
)
_SCALES: Final = {"thousand": 1e3, "million": 1e6, "billion": 1e9}


@dataclass(frozen=True, slots=True)
class Question:
    """What a question says of the values that are asked for.

    Attributes:
        values: Those that it names itself.
        fineness: How fine a date is asked for.
        scale: What the number asked for counts: 1e6 for "in millions".
        years: Those of its dates.
        words: Its words of four letters or more, in small letters.
        denies: Whether it has a negation itself.
        counted: What it asks the number of, in small letters: "legs" of "how many legs has it".
        direction: 1 where it asks for a rise, -1 for a fall, 0 for neither or either.
    """

    values: tuple[Value, ...]
    fineness: Asked
    scale: float
    years: frozenset[int]
    words: frozenset[str] = frozenset()
    denies: bool = False
    counted: frozenset[str] = frozenset()
    direction: int = 0

    @classmethod
    def of(cls, question: str) -> "Question":
        """Reads a question, which may be empty."""
        begin = question[:MAX_QUESTION]
        fineness = _ASKED.search(begin)
        scale = _SCALES_ASKED.search(begin)
        values = values_of(begin)
        years = (value.content.year for value in values if isinstance(value.content, Date))
        return cls(
            values,
            _FINENESS[fineness[1].lower()] if fineness else Asked.ANY,
            _SCALES[scale[1].lower()] if scale else 1.0,
            frozenset(year for year in years if year is not None),
            frozenset(word.lower() for word in WORD.findall(begin)),
            DENIES.search(begin) is not None,
            frozenset(noun.lower() for noun in _COUNTED.findall(begin)),
            bool(_RISE.search(begin)) - bool(_FALL.search(begin)),
        )

    def has(self, value: Value) -> bool:
        """Whether it names a value already."""
        return any(says(known, value, self) for known in self.values)


def says(value: Value, reference: Value, question: Question) -> bool:
    """Whether a value says what a reference's does."""
    match value.content, reference.content:
        case Date() as ours, Date() as theirs:
            same = ours.says(theirs, question.fineness, question.years)
        case Time() as ours, Time() as theirs:
            same = ours.says(theirs)
        case Ordinal() as ours, Ordinal() as theirs:
            same = ours.says(theirs)
        case (Ordinal() as place, Quantity() as amount) | (Quantity() as amount, Ordinal() as place):
            place_alone = value.whole or (place.named and not place.noun)  # "No. 7"
            same = place_alone and amount.unit is None and place.number == f"{amount.value:g}"
        case Symbol() as ours, Symbol() as theirs:
            same = ours.says(theirs)
        case Locant() as ours, Locant() as theirs:
            same = ours.says(theirs)
        case Relation() as ours, Relation() as theirs:
            same = ours.says(theirs)
        case Formula() as ours, Formula() as theirs:
            same = ours.equals(theirs)
        case ours, theirs:
            same = _same_number(_number(ours), _number(theirs), question.scale)
    return same


def opposed(value: Value, reference: Value, question: Question) -> bool:
    """Whether an equal value says the opposite.

    A date before which it was and one after which it was; a fall where the question asks for a rise and the reference
    names no direction.
    """
    if value.side * reference.side < 0:
        return True
    match value.content, reference.content:
        case Quantity() as ours, Quantity() as theirs if not theirs.direction and not theirs.signed:
            return ours.direction * question.direction < 0
        case _:
            return False


def in_place_of(value: Value, reference: Value) -> bool:
    """Whether an answer's value, which is not the reference's, stands in its place: of the same kind and unit."""
    match value.content, reference.content:
        case Date() as ours, Date() as theirs:
            other = ours.contradicts(theirs)
        case Ordinal() as ours, Ordinal() as theirs:
            other = ours.alike(theirs)
        case Symbol() as ours, Symbol() as theirs:
            other = ours.contradicts(theirs)
        case Locant() as ours, Locant() as theirs:
            other = ours.contradicts(theirs)
        case (Formula() as ours, Formula() as theirs) | (Relation() as ours, Relation() as theirs):
            other = bool(ours.names & theirs.names)
        case Quantity() as ours, Quantity() as theirs:
            other = contradicts(theirs, ours)
        case ours, theirs:
            other = type(ours) is type(theirs)
    return other


def coarser(value: Value, reference: Value) -> bool:
    """Whether a value is a date that says the reference's less exactly."""
    ours, theirs = value.content, reference.content
    return isinstance(ours, Date) and isinstance(theirs, Date) and ours.coarser_than(theirs)


def _same_number(amount: Quantity | None, wanted: Quantity | None, scale: float) -> bool:
    """Whether both are numbers and equal, perhaps one of them in the thousands or millions that are asked for."""
    if amount is None or wanted is None:
        return False
    if amount.says(wanted):
        return True
    return scale > 1 and (amount.says(_scaled(wanted, scale)) or _scaled(amount, scale).says(wanted))


def _number(content: Content) -> Quantity | None:
    """A quantity, the solution of an equation, or a year that may be a number as well."""
    if isinstance(content, Quantity):
        return content
    if isinstance(content, Relation) and (solution := content.solution) is not None:
        return Quantity(solution, 0.0, signed=solution < 0)
    if isinstance(content, Date) and content.number is not None:
        return Quantity(float(content.number), 1.0)
    return None


def _scaled(quantity: Quantity, scale: float) -> Quantity:
    upper = None if quantity.upper is None else quantity.upper * scale
    return replace(quantity, value=quantity.value * scale, place=quantity.place * scale, upper=upper)
