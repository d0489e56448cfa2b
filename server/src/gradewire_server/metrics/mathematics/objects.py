"""Mathematical objects, and when two of them are equal."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from math import isfinite
from typing import Final, TypeAlias

from gradewire_server.metrics.mathematics.expressions import Expression
from gradewire_server.metrics.mathematics.values import Number, Step, close, size_of, value_of

_LEAST_POINTS: Final = 3
_POINTS: Final = 3
_STARTS: Final = (0.9 + 0.4j, -1.1 + 0.3j, 3.1 - 0.7j, -4.2 - 0.6j)
_MAX_STEPS: Final = 24
_ROOT: Final = 1e-11
_ZERO: Final = 1e-6
_COMPLEX: Final[tuple[Step, ...]] = (("i", 0), ("number", 0), ("*", 0), ("+", 0))
"""Steps that add 0·i, so that complex values are allowed."""
_FEW: Final = range(-6, 7)
_MANY: Final = range(-40, 41)
_LARGEST: Final = 1e100
_SMALLEST: Final = 1e-9
_MAX_BRANCHES: Final = 6


@dataclass(frozen=True)
class Style:
    """Properties of a question that decide when two objects are equal.

    Attributes:
        interval: True if the question is about an interval or an inequality, so that brackets count.
        point: True if the question is about a point or a vector, so that brackets do not count.
        ordered: True if the order of a list's items counts.
        exact: True if a decimal does not count as an exact value.
        base: The base of the number that the question asks for; 0 if it names none.
        names: The variables in the question, in order.
    """

    interval: bool = False
    point: bool = False
    ordered: bool = False
    exact: bool = False
    direction: bool = False
    base: int = 0
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Interval:
    """An interval; an end that is infinite is open."""

    low: Expression
    low_closed: bool
    high: Expression
    high_closed: bool


_Ends: TypeAlias = tuple[float, bool, float, bool]


@dataclass(frozen=True)
class RealSet:
    """A union of intervals; no intervals are the empty set.

    Attributes:
        name: The variable of an inequality, or "".
    """

    parts: tuple[Interval, ...]
    name: str = field(default="", compare=False)

    @cached_property
    def merged(self) -> tuple[_Ends, ...] | None:
        """The disjoint intervals in order, without empty ones; None if an end has no real value."""
        ends: list[_Ends] = []
        for part in self.parts:
            low, high = real(part.low), real(part.high)
            if low is None or high is None:
                return None
            if low < high or (low == high and part.low_closed and part.high_closed):
                ends.append((low, part.low_closed, high, part.high_closed))
        return _merged(ends)

    def equals(self, reference: "RealSet") -> bool:
        """Return True if both contain the same numbers; ends with variables are compared one by one."""
        ours, theirs = self.merged, reference.merged
        if ours is not None and theirs is not None:
            return len(ours) == len(theirs) and all(map(_same_ends, ours, theirs))
        if len(self.parts) != len(reference.parts):
            return False
        return all(any(_same_interval(part, other) for other in self.parts) for part in reference.parts)

    def intersection(self, other: "RealSet") -> "RealSet | None":
        """Return the numbers in both sets; None if an end has no real value."""
        if self.merged is None or other.merged is None:
            return None
        found = []
        for first in self.parts:
            for second in other.parts:
                low, low_closed = _inner((first.low, first.low_closed), (second.low, second.low_closed), 1)
                high, high_closed = _inner((first.high, first.high_closed), (second.high, second.high_closed), -1)
                found.append(Interval(low, low_closed, high, high_closed))
        return RealSet(tuple(found), self.name or other.name)


def _inner(first: tuple[Expression, bool], second: tuple[Expression, bool], sign: int) -> tuple[Expression, bool]:
    one, two = real(first[0]) or 0.0, real(second[0]) or 0.0
    if one == two:
        return first[0], first[1] and second[1]
    return first if sign * one > sign * two else second


def real(end: Expression) -> float | None:
    """Return the real value of an interval's end, perhaps infinite; None if it has none."""
    if end.infinite:
        return end.infinite * float("inf")
    value = end.value
    try:
        return None if value is None or isinstance(value, complex) else float(value)
    except OverflowError:
        return None


def _merged(ends: Sequence[_Ends]) -> tuple[_Ends, ...]:
    merged: list[_Ends] = []
    for part in sorted(ends, key=lambda each: (each[0], not each[1])):
        if merged:
            low, low_closed, high, high_closed = merged[-1]
            if part[0] < high or (_near(part[0], high) and (part[1] or high_closed)):
                if part[2] > high or (part[2] == high and part[3]):
                    high, high_closed = part[2], part[3]
                merged[-1] = low, low_closed, high, high_closed
                continue
        merged.append(part)
    return tuple(merged)


def _near(first: float, second: float) -> bool:
    return first == second or (isfinite(first) and isfinite(second) and close(first, second))


def _same_ends(ours: _Ends, theirs: _Ends) -> bool:
    return ours[1] == theirs[1] and ours[3] == theirs[3] and _near(ours[0], theirs[0]) and _near(ours[2], theirs[2])


def _same_interval(ours: Interval, theirs: Interval) -> bool:
    if (ours.low_closed, ours.high_closed) != (theirs.low_closed, theirs.high_closed):
        return False
    return ours.low.equals(theirs.low) and ours.high.equals(theirs.high)


@dataclass(frozen=True)
class Assignment:
    """A name and its value: "x = 4", "f(x) = 2x + 1".

    Attributes:
        left: The left side without blanks.
        value: The value after the last "=".
        relation: The whole as an equation, if both sides are expressions.
    """

    left: str
    value: "MathObject"
    relation: "Relation | None" = None

    @property
    def base(self) -> str:
        """The name without a subscript in digits: "x" for "x_1"."""
        return self.left.replace("(", "").replace(")", "").rstrip("0123456789").removesuffix("_")

    @property
    def variable(self) -> str:
        """The bound variable of a function: "t" for "f(t)" and "f(g(t))"; may be empty."""
        inside = self.left.rstrip(")").rpartition("(")[2] if self.left.endswith(")") else ""
        return inside if len(inside) == 1 and inside.isalpha() else ""


@dataclass(frozen=True)
class Collection:
    """Several objects in brackets or in a row.

    Attributes:
        opener: "(", "[", "{", "⟨", or "," without brackets.
        members: The objects.
        closer: The closing bracket; "" without brackets.
    """

    opener: str
    members: "tuple[MathObject, ...]"
    closer: str = ""

    @property
    def as_interval(self) -> RealSet | None:
        """The interval that the brackets and two ends form, or None."""
        if len(self.members) != 2 or self.opener not in "([]" or self.closer not in ")][":
            return None
        low, high = self.members
        if not isinstance(low, Expression) or not isinstance(high, Expression):
            return None
        low_closed = self.opener == "[" and not low.infinite
        high_closed = self.closer == "]" and not high.infinite
        return RealSet((Interval(low, low_closed, high, high_closed),))

    @property
    def as_points(self) -> RealSet | None:
        """The set of a finite set's numbers, or None."""
        members = [member for member in self.members if isinstance(member, Expression)]
        if len(members) != len(self.members) or self.opener not in "{,":
            return None
        return RealSet(tuple(Interval(each, True, each, True) for each in members))  # noqa: FBT003


@dataclass(frozen=True)
class Matrix:
    """A matrix, by rows."""

    rows: tuple[tuple[Expression, ...], ...]

    @property
    def vector(self) -> tuple[Expression, ...] | None:
        """The entries of a single row or column; otherwise None."""
        if len(self.rows) == 1:
            return self.rows[0]
        return tuple(row[0] for row in self.rows) if all(len(row) == 1 for row in self.rows) else None

    def equals(self, reference: "Matrix", *, exact: bool = False) -> bool:
        """Return True if both have the same shape and equal entries."""
        if [len(row) for row in self.rows] != [len(row) for row in reference.rows]:
            return False
        return all(
            ours.equals(theirs, exact=exact)
            for row, other in zip(self.rows, reference.rows, strict=True)
            for ours, theirs in zip(row, other, strict=True)
        )


@dataclass(frozen=True)
class Relation:
    """An equation or inequality with variables: left, sign ("=", "<", "≤", "≠") and right."""

    left: Expression
    sign: str
    right: Expression

    @cached_property
    def _values(self) -> tuple[Number | None, ...]:
        return self.left.difference(self.right).values

    @property
    def names(self) -> frozenset[str]:
        """The names of the variables."""
        return self.left.names | self.right.names

    def equals(self, reference: "Relation") -> bool:
        """Return True if one is the other, multiplied by a number that is not 0 (positive for an inequality)."""
        if self.sign != reference.sign or self.names != reference.names:
            return False
        pairs = [(a, b) for a, b in zip(self._values, reference._values, strict=True) if a is not None and b]  # noqa: SLF001
        if len(pairs) < _LEAST_POINTS:
            return False
        if self.sign == "=" and len(self.names) > 1 and self._contains(reference) and reference._contains(self):  # noqa: SLF001
            return True
        factor = pairs[0][0] / pairs[0][1]
        if not factor or (self.sign in "<≤" and (isinstance(factor, complex) or factor < 0)):
            return False
        return all(close(a, factor * b) for a, b in pairs)

    def _contains(self, other: "Relation") -> bool:
        """Return True if solutions of another equation, found by the secant method, solve this one."""
        name = max(self.names)
        ours, theirs = self.left.difference(self.right).steps, other.left.difference(other.right).steps
        found = 0
        for point in range(_POINTS):
            for start in _STARTS:
                root = _root(theirs, name, point, start)
                if root is None:
                    continue
                value, scale = _at(ours, name, root, point), _at(ours, name, root + 1, point)
                if value is None or scale is None or abs(value) > _ZERO * (abs(scale) + abs(root) + 1):
                    return False
                found += 1
        return found >= _LEAST_POINTS


def _at(steps: Sequence[Step], name: str, number: complex, point: int) -> complex | None:
    value = value_of([("number", number) if step == (f"={name}", 0) else step for step in [*steps, *_COMPLEX]], point)
    return None if value is None or size_of(value) > _LARGEST else complex(value)


def _root(steps: Sequence[Step], name: str, point: int, start: complex) -> complex | None:
    """Return a root of a function in one variable by the secant method, or None."""
    before, now = start, start + 0.5
    first, second = _at(steps, name, before, point), _at(steps, name, now, point)
    for _ in range(_MAX_STEPS):
        if first is None or second is None:
            return None
        if abs(second) < _ROOT:
            return now
        if first == second:
            return None
        before, now = now, now - second * (now - before) / (second - first)
        first, second = second, _at(steps, name, now, point)
    return None


@dataclass(frozen=True)
class Family:
    """The values of expressions for all whole numbers.

    Attributes:
        members: The expressions, one for each branch.
        parameter: The name of the whole number.
        natural: True if the whole number is positive or 0.
    """

    members: tuple[Expression, ...]
    parameter: str
    natural: bool = False

    def equals(self, reference: "Family") -> bool:
        """Return True if each of some values of either family belongs to the other."""
        if self.natural != reference.natural or max(len(self.members), len(reference.members)) > _MAX_BRANCHES:
            return False
        return self._within(reference) and reference._within(self)  # noqa: SLF001

    def _within(self, other: "Family") -> bool:
        few = self._values(_FEW)
        many = other._values(_MANY)  # noqa: SLF001
        return few is not None and many is not None and few <= many

    def _values(self, numbers: range) -> frozenset[str] | None:
        found = set()
        for member in self.members:
            for number in numbers:
                if self.natural and number < 0:
                    continue
                value = member.at(self.parameter, Fraction(number))
                if value is None or isinstance(value, complex) or size_of(value) > _LARGEST:
                    return None
                found.add("0" if size_of(value) < _SMALLEST else f"{float(value):.9g}")
        return frozenset(found)


@dataclass(frozen=True)
class Based:
    """A number in digits of a base, 2 to 36."""

    digits: str
    base: int

    @property
    def value(self) -> int:
        """The number's value."""
        return int(self.digits, self.base)


@dataclass(frozen=True)
class Endless:
    """A number of solutions without end ("infinitely many")."""


@dataclass(frozen=True)
class Opaque:
    """A formula with sums, products or integrals, which is compared by its signs only."""

    text: str


MathObject: TypeAlias = (
    Expression | RealSet | Assignment | Collection | Matrix | Relation | Family | Based | Endless | Opaque
)


def is_rising(values: Sequence[float]) -> bool:
    """Return True if each value is below the next."""
    return all(first < second for first, second in pairwise(values))
