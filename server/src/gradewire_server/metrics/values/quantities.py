"""Parse and compare quantities, which are numbers with units."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import floor, isclose, log10
from typing import Final

from gradewire_server.metrics.values.numerals import Numeral, numeral_at
from gradewire_server.metrics.values.tokens import VOCABULARY, Token, adjacent, lower_at, tokens_are
from gradewire_server.metrics.values.units import (
    CURRENCIES,
    CURRENCY_SIGNS,
    FOOT,
    INCH,
    PERCENT,
    RADIAN,
    Dimension,
    Unit,
    UnitFound,
    unit_at,
)

_WORDS: Final = VOCABULARY["quantities"]
_HEDGES: Final = frozenset(_WORDS["hedges"].split())
_FALLS: Final = frozenset(_WORDS["falls"].split())
_RISES: Final = frozenset(_WORDS["rises"].split())
_DIRECTION_LINKS: Final = frozenset(_WORDS["links"].split())
"""Words between a direction and its amount, like "of" in "a loss of 5"."""
_BETWEEN: Final = frozenset({"between", "zwischen", "entre"})
_BETWEEN_LINKS: Final = frozenset({"and", "und", "et", "y"})
_RANGE_LINKS: Final = frozenset({"-", "to", ":", "bis", "à", "hasta"})
_CENTS: Final = frozenset({"cent", "cents", "centime", "centimes", "céntimo", "céntimos"})
_MAX_LINKS: Final = 3
_LINKS_OF_SMALLER_UNITS: Final = frozenset({"and", ",", "und", "et", "y", "con"})
_BOUNDS_BEFORE: Final[Mapping[tuple[str, ...], str]] = {
    tuple(phrase.split()): bound for bound, phrases in _WORDS["bounds_before"].items() for phrase in phrases
}
_BOUNDS_BEHIND: Final[Mapping[str, str]] = {
    word: bound for bound, words in _WORDS["bounds_behind"].items() for word in words.split()
}
_CURRENCIES_BEFORE: Final = frozenset(_WORDS["currencies_before"].split())
_MONEY_SCALES: Final = VOCABULARY["numerals"]["money_scales"]

_EXACT: Final = 1e-6
_EXACT_WHOLE: Final = 1e-15
"""Relative tolerance for whole numbers in the same unit, which leaves the last of 15 digits its meaning."""
_SAME_UNIT_TOLERANCE: Final = 0.01
"""Relative tolerance for a rounded number in the same unit."""
_OTHER_UNIT_TOLERANCE: Final = 0.006
"""Relative tolerance for numbers in two different units. Conversion factors are often rounded."""
_KELVINS: Final = 0.6
"""Tolerance in K for a temperature that was converted and rounded to a degree."""
_HEDGED_TOLERANCE: Final = 0.05
_MANY: Final = 10_000.0
"""Minimum size at which a number with only one or two significant digits counts as rounded."""
_ROUND_TOLERANCE: Final = 0.005
_SIGNIFICANT: Final = 2


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number, perhaps with a unit.

    Attributes:
        value: The number with its sign and scale words, in `unit`; the lower end of a range.
        place: The place value of the last significant digit; 0 if the number is exact ("1/3", "sqrt(2)").
        upper: The upper end of a range, or None.
        bound: "<", "<=", ">" or ">=" for a bound, otherwise "".
        direction: 1 if words around the number mean a rise, -1 for a fall, 0 for neither.
        fraction: True if the text contains a part of a whole ("two thirds").
        ratio: The two numbers of a ratio like "3:2", or None.
    """

    value: float
    place: float
    unit: Unit | None = None
    unit_name: str = ""
    upper: float | None = None
    hedged: bool = False
    bound: str = ""
    direction: int = 0
    signed: bool = False
    fraction: bool = False
    ratio: tuple[float, float] | None = None

    @property
    def dimension(self) -> Dimension:
        """The unit's dimension; () for a plain number, a share or a percentage."""
        return self.unit.dimension if self.unit else ()

    @property
    def family(self) -> str:
        """The family in which quantities can contradict each other, such as "money" for all currencies."""
        base = self.dimension[0][0] if self.dimension else ""
        return "money" if base.startswith("money") else str(self.dimension) if self.dimension else ""

    def in_base(self, value: float) -> float:
        """Convert a number from this quantity's unit to base units."""
        return value if self.unit is None else value * self.unit.factor + self.unit.offset

    def equals(self, reference: "Quantity") -> bool:
        """Return True if this quantity, which is from an answer, equals the reference's quantity."""
        # Different bounds never agree, but an answer may omit "more than".
        if reference.bound and self.bound and reference.bound != self.bound:
            return False
        if (reference.ratio is None) != (self.ratio is None):
            return False
        if reference.ratio is not None and self.ratio is not None:
            return isclose(reference.ratio[0] * self.ratio[1], reference.ratio[1] * self.ratio[0])
        return any(_same(reference, reading) for reading in self._readings(reference))

    def contradicts(self, reference: "Quantity") -> bool:
        """Return True if the two quantities differ, but are in the same family."""
        return reference.family == self.family and not self.equals(reference)

    def _readings(self, reference: "Quantity") -> "list[Quantity]":
        readings = []
        if self.dimension == reference.dimension and (self.unit is not None) == (reference.unit is not None):
            readings.append(self)
        elif self.unit is None:  # the answer may omit an obvious unit
            readings.append(replace(self, unit=reference.unit))
            if not reference.dimension:
                readings.append(self)
        elif reference.unit is None:
            readings.append(replace(self, unit=None))
            if not self.dimension:
                readings.append(self)
        elif _pounds(self, reference) or _degrees(self, reference) or _yuan(self, reference):
            readings.append(replace(self, unit=reference.unit))
        if not reference.place and not reference.dimension and self.dimension == RADIAN.dimension:
            readings.append(replace(self, value=self.in_base(self.value) / RADIAN.factor, unit=reference.unit))
        if not self.place and not self.dimension and reference.dimension == RADIAN.dimension:
            readings.append(replace(self, unit=RADIAN))
        return readings


def _pounds(one: Quantity, other: Quantity) -> bool:
    names = {one.unit_name, other.unit_name}
    return bool(names & {"pound", "pounds"}) and "money GBP" in {
        quantity.dimension[0][0] for quantity in (one, other) if quantity.dimension
    }


def _yuan(one: Quantity, other: Quantity) -> bool:
    """Return True if one amount is in yuan and the other has the sign of the yen, which is also the yuan's."""
    bases = {quantity.dimension[0][0] for quantity in (one, other) if quantity.dimension}
    return "\u00a5" in {one.unit_name, other.unit_name} and bases == {"money JPY", "money CNY"}


def _degrees(one: Quantity, other: Quantity) -> bool:
    """Return True if one quantity has a temperature scale and the other is in plain degrees: "32 °F", "32 degrees"."""
    return "degree" in {one.unit_name, other.unit_name} and (_temperatures(one) or _temperatures(other))


def _same(reference: Quantity, answer: Quantity) -> bool:
    if reference.upper is not None:
        return _in_range(reference, reference.upper, answer)
    if answer.upper is not None or not _signs_agree(reference, answer):
        return False
    ours, theirs = reference.in_base(reference.value), answer.in_base(answer.value)
    if reference.signed != answer.signed or reference.direction != answer.direction:
        ours, theirs = abs(ours), abs(theirs)
    counted = reference.unit == answer.unit and reference.value % 1 == answer.value % 1 == 0
    if isclose(ours, theirs, rel_tol=_EXACT_WHOLE if counted else _EXACT, abs_tol=1e-30):
        return True
    apart = abs(ours - theirs) / max(abs(ours), abs(theirs))
    if reference.hedged or answer.hedged:
        return apart <= _HEDGED_TOLERANCE
    other_unit = reference.unit != answer.unit and reference.unit is not None and answer.unit is not None
    if other_unit and _temperatures(reference):
        return abs(ours - theirs) <= _KELVINS
    converted = other_unit and apart <= _OTHER_UNIT_TOLERANCE
    return converted or _rounded(reference, answer, ours, theirs, apart)


def _in_range(reference: Quantity, upper: float, answer: Quantity) -> bool:
    first, last = reference.in_base(reference.value), reference.in_base(upper)
    begin = answer.in_base(answer.value)
    if answer.upper is None:
        return reference.hedged and first <= begin <= last
    ends = (first, begin), (last, answer.in_base(answer.upper))
    return all(isclose(ours, theirs, rel_tol=_OTHER_UNIT_TOLERANCE) for ours, theirs in ends)


def _temperatures(quantity: Quantity) -> bool:
    return quantity.dimension == (("temperature", 1),)


def _signs_agree(reference: Quantity, answer: Quantity) -> bool:
    """Return True if signs and directions agree.

    If the reference is negative, the answer must be negative. If the reference has a plus sign or states a rise, the
    answer must not be negative.
    """
    if _temperatures(reference) and reference.unit != answer.unit:  # 0 K is negative in other units
        return True
    ours, theirs = _sign(reference), _sign(answer)
    if ours < 0:
        return theirs < 0
    if reference.signed or reference.direction > 0:
        return theirs >= 0
    return not (answer.signed and answer.value < 0) or ours == theirs


def _sign(quantity: Quantity) -> int:
    return -1 if quantity.value < 0 else quantity.direction


def _places(quantity: Quantity) -> float:
    factor = quantity.unit.factor if quantity.unit else 1.0
    return quantity.place * factor


def _rounded(reference: Quantity, answer: Quantity, ours: float, theirs: float, apart: float) -> bool:
    first, second = _places(reference), _places(answer)
    coarse, fine, place = (ours, theirs, first) if first >= second else (theirs, ours, second)
    if not place or first == second or abs(coarse - fine) > place * 0.5000001:
        return False
    digits = floor(log10(abs(coarse) / place) + 1e-9) + 1 if abs(coarse) >= place else 1
    if digits > _SIGNIFICANT:
        return apart <= _SAME_UNIT_TOLERANCE
    if place < 1 or (digits == _SIGNIFICANT and place <= 1):
        return digits >= _SIGNIFICANT and apart <= _SAME_UNIT_TOLERANCE
    return abs(coarse) >= _MANY and apart <= _ROUND_TOLERANCE


def quantity_at(tokens: Sequence[Token], at: int) -> tuple[Quantity, int, int] | None:
    """Return the quantity whose number is at `at`, its first index, and the index after its end; otherwise None."""
    clock = _hour_and_a_half(tokens, at) or _feet_and_inches(tokens, at)
    if clock is not None:
        return clock[0], at, clock[1]
    # If a power is too large to be a number, its exponent must not become a separate number.
    numeral = None if lower_at(tokens, at - 1) == "^" else numeral_at(tokens, at)
    if numeral is None:
        return None
    first, currency = _currency_before(tokens, at)
    quantity, end = _with_unit(tokens, numeral, currency)
    quantity, end = _with_smaller_units(tokens, quantity, end)
    if not _is_change(tokens, quantity, first, end):
        quantity, end = _with_range_or_ratio(tokens, quantity, end, currency)
    return _in_context(tokens, quantity, first, end)


def _with_unit(tokens: Sequence[Token], numeral: Numeral, currency: UnitFound | None) -> tuple[Quantity, int]:
    value, place, end = numeral.value, numeral.place, numeral.end
    found = currency
    if currency is not None:
        factor = _MONEY_SCALES.get(lower_at(tokens, end), 1.0)
        value, place, end = value * factor, place * factor, end + (factor > 1)
    elif (found := unit_at(tokens, end + _article_of_part(tokens, numeral))) is not None:
        value *= found.sign
        end = found.end
    return (
        Quantity(
            value,
            place,
            found.unit if found else None,
            found.name if found else "",
            signed=bool(found and found.sign < 0),
            fraction=numeral.fraction,
        ),
        end,
    )


def _article_of_part(tokens: Sequence[Token], numeral: Numeral) -> int:
    """Return the number of tokens between a part and its whole: 2 in "three quarters of an hour", otherwise 0."""
    of = numeral.fraction and lower_at(tokens, numeral.end) == "of" and lower_at(tokens, numeral.end + 1) in {"a", "an"}
    return 2 * of


def _currency_before(tokens: Sequence[Token], at: int) -> tuple[int, UnitFound | None]:
    """Return an amount's first index, and the currency before the number at `at`.

    If there is no such currency, return `at` and None.
    """
    before = at - 1
    before -= lower_at(tokens, before) == "-" and lower_at(tokens, before - 1) in CURRENCY_SIGNS  # "$-5"
    bracket = lower_at(tokens, before) == "("
    before -= bracket
    lower = lower_at(tokens, before)
    unit = CURRENCY_SIGNS.get(lower) or (CURRENCIES.get(lower) if lower in _CURRENCIES_BEFORE else None)
    if unit is None:
        return at, None
    before -= lower == "$" and lower_at(tokens, before - 1) == "us"
    return before, UnitFound(unit, lower, at)


def _with_smaller_units(tokens: Sequence[Token], quantity: Quantity, end: int) -> tuple[Quantity, int]:
    while (
        quantity.unit is not None and quantity.unit.dimension and not quantity.unit.offset and quantity.value % 1 == 0
    ):
        start = end + (lower_at(tokens, end) in _LINKS_OF_SMALLER_UNITS)
        if start >= len(tokens):
            break
        numeral = numeral_at(tokens, start)
        found = None if numeral is None else unit_at(tokens, numeral.end)
        if numeral is not None and found is None and lower_at(tokens, numeral.end) == "in":  # "6ft 1in"
            found = UnitFound(INCH, "in", numeral.end + 1)
        if numeral is not None and quantity.family == "money" and lower_at(tokens, numeral.end) in _CENTS:
            cent = replace(quantity.unit, factor=quantity.unit.factor / 100)
            found = UnitFound(cent, "cent", numeral.end + 1)
        if numeral is None or found is None or found.unit.dimension != quantity.unit.dimension:
            break
        share = found.unit.factor / quantity.unit.factor
        if share >= 1 or numeral.value * share >= 1:
            break
        quantity = replace(quantity, value=quantity.value + numeral.value * share, place=numeral.place * share)
        end = found.end
    return quantity, end


def _with_range_or_ratio(
    tokens: Sequence[Token], quantity: Quantity, end: int, currency: UnitFound | None
) -> tuple[Quantity, int]:
    link = lower_at(tokens, end)
    between = any(lower_at(tokens, index) in _BETWEEN for index in range(max(0, end - 6), end))
    if link not in _RANGE_LINKS and not (link in _BETWEEN_LINKS and between):
        return quantity, end
    start = end + 1 + (lower_at(tokens, end + 1) in CURRENCY_SIGNS)
    numeral = numeral_at(tokens, start) if start < len(tokens) else None
    if numeral is None:
        return quantity, end
    other, behind = _with_unit(tokens, numeral, currency)
    joined = _range_or_ratio(quantity, other, link)
    return (quantity, end) if joined is None else (joined, behind)


def _is_change(tokens: Sequence[Token], quantity: Quantity, first: int, end: int) -> bool:
    """Return True if an amount is a change and its result follows: "by 1.7% to 19.1%", "rose $5 to $9"."""
    if lower_at(tokens, end) != "to" or quantity.unit is None:
        return False
    before = lower_at(tokens, first - 1 - (lower_at(tokens, first - 1) in _HEDGES))
    return before == "by" or before in _FALLS or before in _RISES


def _range_or_ratio(quantity: Quantity, other: Quantity, link: str) -> Quantity | None:
    unit = quantity.unit or other.unit
    falls = other.value <= quantity.value
    if unit is None and (link == ":" or (link == "to" and falls)):
        return Quantity(quantity.value, 0.0, ratio=(quantity.value, other.value))
    if link == ":" or (other.unit is not None and unit is not None and other.dimension != unit.dimension):
        return None
    factor = other.unit.factor / unit.factor if other.unit is not None and unit is not None else 1.0
    upper = other.value * factor
    if upper <= quantity.value:
        return None
    return replace(quantity, unit=unit, unit_name=quantity.unit_name or other.unit_name, upper=upper)


def _hour_and_a_half(tokens: Sequence[Token], at: int) -> tuple[Quantity, int] | None:
    if lower_at(tokens, at) not in {"a", "an", "one"}:
        return None
    found = unit_at(tokens, at + 1)
    if found is None or not tokens_are(tokens, found.end, "and", "a", "half"):
        return None
    return Quantity(1.5, 0.1, found.unit, found.name), found.end + 3


def _feet_and_inches(tokens: Sequence[Token], at: int) -> tuple[Quantity, int] | None:
    feet = tokens[at].whole
    if feet is None or lower_at(tokens, at + 1) != "'" or at + 2 >= len(tokens):
        return None
    inches = tokens[at + 2].whole
    if inches is None or inches >= 12 or lower_at(tokens, at + 3) not in {'"', "'"}:
        return None
    value = feet + inches * INCH.factor / FOOT.factor
    return Quantity(value, INCH.factor / FOOT.factor, FOOT, "foot"), at + 4


def _in_context(tokens: Sequence[Token], quantity: Quantity, first: int, end: int) -> tuple[Quantity, int, int]:
    """Add a quantity's sign, hedge, bound and direction from nearby words; also return the quantity's start and end."""
    start, sign = _sign_before(tokens, first)
    if lower_at(tokens, first) in CURRENCY_SIGNS and lower_at(tokens, first + 1) == "-":
        sign = -1
    opened = any(lower_at(tokens, index) == "(" for index in range(first - 1, first + 2))
    bracketed = opened and lower_at(tokens, end) == ")" and quantity.family == "money"
    end += bracketed
    if lower_at(tokens, end) == ")" and lower_at(tokens, end + 1) == "%" and lower_at(tokens, first - 1) == "(":
        bracketed, end = True, end + 2  # "(2.5)%"
        quantity = replace(quantity, unit=PERCENT, unit_name="%")
    below_zero = tokens_are(tokens, end, "below", "zero")
    end += 2 * below_zero
    scale = _WORDS["bracketed_scales"].get(lower_at(tokens, end)) if bracketed else None
    end += scale is not None
    scale = scale or 1.0
    value = quantity.value * scale
    if sign < 0 or bracketed or below_zero:
        value = -abs(value)
    bound, start = _bound_before(tokens, start)
    hedged = lower_at(tokens, start - 1) in _HEDGES or (lower_at(tokens, start - 2) in _HEDGES and bool(bound))
    bound = bound or _bound_after(tokens, end)
    return (
        replace(
            quantity,
            value=value,
            place=quantity.place * scale,
            hedged=hedged,
            bound=bound,
            direction=_direction(tokens, start - hedged, end),
            signed=quantity.signed or sign != 0 or bracketed or below_zero,
        ),
        start,
        end,
    )


def _sign_before(tokens: Sequence[Token], first: int) -> tuple[int, int]:
    before = lower_at(tokens, first - 1)
    if before in {"minus", "negative", "moins", "menos"}:
        return first - 1, -1
    if before in {"-", "+"} and adjacent(tokens, first):
        apart = not adjacent(tokens, first - 1) or lower_at(tokens, first - 2) in {"(", "=", "[", ","}
        if apart:
            return first - 1, -1 if before == "-" else 1
    return first, 0


def _bound_before(tokens: Sequence[Token], start: int) -> tuple[str, int]:
    for length in (3, 2, 1):
        words = tuple(lower_at(tokens, index) for index in range(start - length, start))
        if words in _BOUNDS_BEFORE:
            return _BOUNDS_BEFORE[words], start - length
    return "", start


def _bound_after(tokens: Sequence[Token], end: int) -> str:
    if lower_at(tokens, end) == "+" and adjacent(tokens, end):
        return ">="
    for link in (end, end + 1, end + 2):  # "18 years or more"
        if lower_at(tokens, link) in {"or", "and"}:
            return _BOUNDS_BEHIND.get(lower_at(tokens, link + 1), "")
        if link >= len(tokens) or not tokens[link].word:
            break
    return ""


def _direction(tokens: Sequence[Token], start: int, end: int) -> int:
    at = start - 1
    links = 0
    while lower_at(tokens, at) in _DIRECTION_LINKS and links < _MAX_LINKS:
        at, links = at - 1, links + 1
    word = lower_at(tokens, at)
    if word in _FALLS:
        return -1
    if word in _RISES or lower_at(tokens, end) in {"more", "higher", "increase"}:
        return 1
    return -1 if lower_at(tokens, end) in {"decrease", "decline", "less", "drop"} else 0
