"""Quantities: a number with what it counts, and when two of them are the same."""

from dataclasses import dataclass, replace
from math import floor, isclose, log10
from typing import Final

from gradewire_server.metrics.text.values.amounts.units import RADIAN, Dimension, Unit

_EXACT: Final = 1e-6
_SAME_UNIT_TOLERANCE: Final = 0.01
"""Relative, of a number that is the other one rounded."""
_OTHER_UNIT_TOLERANCE: Final = 0.006
"""Relative, between two units: factors are often rounded."""
_HEDGED_TOLERANCE: Final = 0.05
_MANY: Final = 10_000.0
"""From here on a number with a single significant digit is a rounded one."""
_ROUND_TOLERANCE: Final = 0.005
_SIGNIFICANT: Final = 2


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number, perhaps with a unit.

    Attributes:
        value: As written, with its sign, scale words multiplied in; the lower end of a range.
        place: What its last significant digit counts; 0 where it is exact ("1/3", "sqrt(2)").
        unit: None for a plain number.
        unit_name: As written, in small letters; empty for none.
        upper: The upper end of a range, else None.
        hedged: Whether it is said to be about so much.
        bound: "<", "<=", ">", ">=" where it is a bound, else empty.
        direction: 1 for a rise, -1 for a fall in words around it, 0 for neither.
        signed: Whether a sign stands before it.
        fraction: Whether it is written as a part of a whole.
        ratio: Both parts of "3:2", else None.
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
        """What it measures; () of a plain number, a share and a percentage."""
        return self.unit.dimension if self.unit else ()

    @property
    def family(self) -> str:
        """What values are alternatives to each other: "money" for all currencies."""
        base = self.dimension[0][0] if self.dimension else ""
        return "money" if base.startswith("money") else str(self.dimension) if self.dimension else ""

    def in_base(self, value: float) -> float:
        """A number of its unit in base units."""
        return value if self.unit is None else value * self.unit.factor + self.unit.offset

    def says(self, reference: "Quantity") -> bool:
        """Whether an answer's quantity, this one, is the reference's."""
        if not _bounds_agree(reference, self) or (reference.ratio is None) != (self.ratio is None):
            return False
        if reference.ratio is not None and self.ratio is not None:
            return isclose(reference.ratio[0] * self.ratio[1], reference.ratio[1] * self.ratio[0])
        return any(_same(reference, reading) for reading in self._readings(reference))

    def _readings(self, reference: "Quantity") -> "list[Quantity]":
        """This quantity as it may be meant beside the reference: with its own unit, or with the reference's."""
        readings = []
        if self.dimension == reference.dimension and (self.unit is not None) == (reference.unit is not None):
            readings.append(self)
        elif self.unit is None:  # a number whose unit goes without saying
            readings.append(replace(self, unit=reference.unit))
            if not reference.dimension:
                readings.append(self)
        elif reference.unit is None:
            readings.append(replace(self, unit=None))
            if not self.dimension:
                readings.append(self)
        elif _pounds(self, reference) or _degrees(self, reference):
            readings.append(replace(self, unit=reference.unit))
        if not reference.place and not reference.dimension and self.dimension == RADIAN.dimension:
            readings.append(replace(self, value=self.in_base(self.value) / RADIAN.factor, unit=reference.unit))
        if not self.place and not self.dimension and reference.dimension == RADIAN.dimension:
            readings.append(replace(self, unit=RADIAN))
        return readings


def contradicts(reference: Quantity, answer: Quantity) -> bool:
    """Whether an answer's quantity stands where the reference's should: of the same family, and another one."""
    return reference.family == answer.family and not answer.says(reference)


def _pounds(one: Quantity, other: Quantity) -> bool:
    names = {one.unit_name, other.unit_name}
    return bool(names & {"pound", "pounds"}) and "money GBP" in {
        quantity.dimension[0][0] for quantity in (one, other) if quantity.dimension
    }


def _degrees(one: Quantity, other: Quantity) -> bool:
    """Whether one counts degrees of temperature and the other plain ones: "32 degrees" beside 32 °F."""
    return {one.unit_name, other.unit_name} & {"degree"} != set() and (_temperatures(one) or _temperatures(other))


def _bounds_agree(reference: Quantity, answer: Quantity) -> bool:
    """Bounds of two directions never do; who leaves out "more than" before a large number says the same."""
    return not reference.bound or not answer.bound or reference.bound == answer.bound


def _same(reference: Quantity, answer: Quantity) -> bool:
    if reference.upper is not None:
        return _in_range(reference, reference.upper, answer)
    if answer.upper is not None or not _signs_agree(reference, answer):
        return False
    ours, theirs = reference.in_base(reference.value), answer.in_base(answer.value)
    if reference.signed != answer.signed or reference.direction != answer.direction:
        ours, theirs = abs(ours), abs(theirs)
    if isclose(ours, theirs, rel_tol=_EXACT, abs_tol=1e-30):
        return True
    apart = abs(ours - theirs) / max(abs(ours), abs(theirs))
    if reference.hedged or answer.hedged:
        return apart <= _HEDGED_TOLERANCE
    other_unit = reference.unit != answer.unit and reference.unit is not None and answer.unit is not None
    converted = other_unit and apart <= _OTHER_UNIT_TOLERANCE and not _temperatures(reference)
    return converted or _rounded(reference, answer, ours, theirs, apart)


def _in_range(reference: Quantity, upper: float, answer: Quantity) -> bool:
    """Whether an answer is the reference's range, or lies in it."""
    first, last = reference.in_base(reference.value), reference.in_base(upper)
    begin = answer.in_base(answer.value)
    if answer.upper is None:
        return first <= begin <= last
    return _near(first, begin) and _near(last, answer.in_base(answer.upper))


def _near(one: float, other: float) -> bool:
    return isclose(one, other, rel_tol=_OTHER_UNIT_TOLERANCE)


def _temperatures(quantity: Quantity) -> bool:
    return quantity.dimension == (("temperature", 1),)


def _signs_agree(reference: Quantity, answer: Quantity) -> bool:
    """A minus has to be said, by sign or by word; that a loss is one goes without saying where the reference does."""
    if _temperatures(reference) and reference.unit != answer.unit:  # 0 K is below zero elsewhere
        return True
    ours, theirs = _sign(reference), _sign(answer)
    if ours < 0:
        return theirs < 0
    if reference.signed or reference.direction > 0:
        return theirs >= 0
    return not (answer.signed and answer.value < 0) or ours == theirs


def _sign(quantity: Quantity) -> int:
    if quantity.value < 0:
        return -1
    return quantity.direction


def _places(quantity: Quantity) -> float:
    factor = quantity.unit.factor if quantity.unit else 1.0
    return quantity.place * factor


def _rounded(reference: Quantity, answer: Quantity, ours: float, theirs: float, apart: float) -> bool:
    """Whether the coarser of two numbers is the finer one rounded, with at least two digits that say something."""
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
