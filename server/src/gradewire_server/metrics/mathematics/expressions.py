"""Expressions and their values, which are compared exactly where that is possible."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Final

from gradewire_server.metrics.mathematics.values import POINTS, Number, Step, close, distance, value_of

_LEAST_POINTS: Final = 3
_FULL_DIGITS: Final = 4
"""Significant digits that a decimal needs to stand for an exact value."""
_LEAST_PLACES: Final = 2
_LEAST_DIGITS: Final = 3
"""Decimal places, or significant digits, of a reference that longer decimals may round to."""


@dataclass(frozen=True)
class Expression:
    """An expression.

    Attributes:
        steps: The operations for a stack machine.
        names: The variables' names, with subscripts: "x", "x_1".
        text: The expression without blanks.
        places: Decimal places of a single decimal, such as 2 for "3.14"; otherwise None.
        digits: Significant digits of a single number; otherwise 0.
    """

    steps: tuple[Step, ...]
    names: frozenset[str]
    text: str
    places: int | None = None
    digits: int = 0

    @cached_property
    def value(self) -> Number | None:
        """The value of an expression without variables; None if it has variables or no finite value."""
        return None if self.names else value_of(self.steps, 0)

    @cached_property
    def values(self) -> tuple[Number | None, ...]:
        """The values at POINTS points that all expressions share."""
        return tuple(value_of(self.steps, point) for point in range(POINTS))

    @property
    def single(self) -> bool:
        """True if the expression is one number in digits, perhaps with a sign."""
        return bool(self.digits)

    @property
    def infinite(self) -> int:
        """1 for infinity, -1 for its negative, otherwise 0."""
        return {"∞": 1, "+∞": 1, "-∞": -1}.get(self.text, 0)

    def equals(self, reference: "Expression", *, exact: bool = False) -> bool:
        """Return True if both have the same value at all points; `exact` forbids decimals for exact values."""
        if self.steps == reference.steps:
            return True
        if self.infinite or reference.infinite:
            return self.infinite == reference.infinite
        if self.names != reference.names:
            return self._constant_equals(reference)
        if not self.names:
            ours, theirs = self.value, reference.value
            if ours is None or theirs is None:
                return False
            return close(ours, theirs) or (not exact and self._rounds(ours, reference, theirs))
        pairs = [
            (ours, theirs)
            for ours, theirs in zip(self.values, reference.values, strict=True)
            if ours is not None and theirs is not None
        ]
        return len(pairs) >= _LEAST_POINTS and all(close(ours, theirs) for ours, theirs in pairs)

    def _constant_equals(self, reference: "Expression") -> bool:
        """Return True if variables cancel: "x - x + 2" and "2"."""
        if not (self.names < reference.names or reference.names < self.names):
            return False
        pairs = list(zip(self.values, reference.values, strict=True))
        return all(ours is not None and theirs is not None and close(ours, theirs) for ours, theirs in pairs)

    def _rounds(self, ours: Number, reference: "Expression", theirs: Number) -> bool:
        """Return True if a decimal rounds to the other value with enough digits."""
        if isinstance(ours, complex) or isinstance(theirs, complex):
            return False
        enough = reference.places is not None and (
            reference.places >= _LEAST_PLACES or reference.digits >= _LEAST_DIGITS
        )
        if reference.places and enough and self.places != reference.places:
            more = self.places is None or self.places > reference.places
            return more and distance(ours, theirs) <= Fraction(1, 2 * 10**reference.places) * _ABOVE_ONE
        if self.places is not None and self.digits >= _FULL_DIGITS and not reference.single:
            # A repeating or irrational value; one that ends is written in full.
            endless = not isinstance(theirs, Fraction) or any(theirs.denominator % prime == 0 for prime in _ENDLESS)
            dots = self.text.endswith((".", "\u2026"))
            return endless and distance(ours, theirs) <= Fraction(2 if dots else 1, 2 * 10**self.places) * _ABOVE_ONE
        return False

    def times(self, other: "Expression") -> "Expression":
        """Return the product of two expressions."""
        steps = (*self.steps, *other.steps, ("*", 0))
        return Expression(steps, self.names | other.names, f"({self.text})*({other.text})")

    def difference(self, other: "Expression") -> "Expression":
        """Return the difference of two expressions."""
        steps = (*self.steps, *other.steps, ("-", 0))
        return Expression(steps, self.names | other.names, f"{self.text}-({other.text})")

    def at(self, name: str, number: Fraction) -> Number | None:
        """Return the value with a number in place of the only variable; None if there is no such value."""
        if self.names - {name}:
            return None
        return value_of([("number", number) if step == (f"={name}", 0) else step for step in self.steps], 0)

    def with_numbers(self, numbers: Mapping[str, Fraction]) -> "Expression | None":
        """Return the value with numbers in place of names and of i, as an expression; None if it has no real value."""
        steps = tuple(
            ("number", numbers[name.removeprefix("=")]) if name.removeprefix("=") in numbers else (name, number)
            for name, number in self.steps
        )
        value = value_of(steps, 0)
        return None if value is None or isinstance(value, complex) else Expression(steps, frozenset(), str(value))

    def renamed(self, old: str, new: str) -> "Expression":
        """Return the expression with another name for a variable."""
        steps = tuple((name if name != f"={old}" else f"={new}", number) for name, number in self.steps)
        return Expression(steps, self.names - {old} | {new}, self.text, self.places, self.digits)


_ABOVE_ONE: Final = Fraction(1_000_001, 1_000_000)
_ENDLESS: Final = (3, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47)
