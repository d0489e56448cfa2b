"""Evaluate the steps of an expression: exactly with fractions where that is possible, else with complex numbers."""

import cmath
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final, TypeAlias
from zlib import crc32

Number: TypeAlias = Fraction | float | complex
Step: TypeAlias = tuple[str, Number | int]
"""The name of an operation, constant or variable ("=x"), and the value if the name is "number"."""

POINTS: Final = 9
"""Points at which expressions with variables are compared: four positive, two with signs, three of whole numbers."""
_WHOLE_POINTS: Final = 3
_SIGNED_POINTS: Final = 2
_MAX_BITS: Final = 32_768
_MAX_FACTORIAL: Final = 3_000
_TOLERANCE: Final = 1e-9
ARGUMENTS: Final = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "lg": "log"}
"""Further names of functions."""


class NoValueError(ValueError):
    """A step without a value, such as a division by zero."""


def close(ours: Number, theirs: Number) -> bool:
    """Return True if two values are equal; exact ones exactly, others up to a relative error of 1e-9."""
    if isinstance(ours, Fraction) and isinstance(theirs, Fraction):
        return ours == theirs
    first, second = _approximate(ours), _approximate(theirs)
    if first is None or second is None:
        return False
    scale = max(abs(first), abs(second))
    # Rounding errors of numbers around 1 leave 1e-16 where a difference should be 0.
    return abs(first - second) <= max(_TOLERANCE * scale, 1e-13 if scale < 1e-12 else 0.0)


def _approximate(value: Number) -> complex | None:
    try:
        return complex(value)
    except OverflowError:
        return None


def size_of(value: Number) -> Fraction | float:
    """Return the absolute value."""
    return abs(value) if isinstance(value, Fraction) else float(abs(value))


def distance(first: Number, second: Number) -> Fraction | float:
    """Return the distance of two values; it is infinite if one of them exceeds floating-point numbers."""
    if isinstance(first, Fraction) and isinstance(second, Fraction):
        return abs(first - second)
    one, two = _approximate(first), _approximate(second)
    return math.inf if one is None or two is None else abs(one - two)


def value_of(steps: Sequence[Step], point: int) -> Number | None:
    """Return the value at a point, 0 to POINTS - 1; None without one, such as after a division by zero.

    With a variable and without the imaginary unit, a root of a negative number has no value.
    """
    real = ("i", 0) not in steps and any(name[0] == "=" for name, _ in steps)
    stack: list[Number] = []
    try:
        for name, number in steps:
            _do(name, number, point, stack)
            if real and isinstance(stack[-1], complex):
                if abs(stack[-1].imag) > 1e-9 * abs(stack[-1]):
                    return None
                stack[-1] = stack[-1].real
    except (ArithmeticError, ValueError, IndexError, TypeError):
        return None
    if len(stack) != 1 or not _finite(stack[0]):
        return None
    return stack[0].real if isinstance(stack[0], complex) and not stack[0].imag else stack[0]


def _finite(value: Number) -> bool:
    return isinstance(value, Fraction) or cmath.isfinite(value)


@lru_cache(maxsize=4_096)
def value_of_name(name: str, point: int) -> Number:
    """Return the value of a variable at a point; it differs between names and between points."""
    mixed = crc32(f"{name} {point}".encode())
    if point >= POINTS - _WHOLE_POINTS:
        return Fraction(2 + mixed % 7)
    positive = 0.35 + mixed % 9_973 / 6_151
    return -positive if point >= POINTS - _WHOLE_POINTS - _SIGNED_POINTS and mixed % 3 else positive


def _do(name: str, number: Number | int, point: int, stack: list[Number]) -> None:
    if name == "number":
        stack.append(Fraction(number) if isinstance(number, int) else number)
    elif name[0] == "=":
        stack.append(value_of_name(name[1:], point))
    elif name in _CONSTANTS:
        stack.append(_CONSTANTS[name])
    elif name in _UNARY:
        stack.append(_UNARY[name](stack.pop()))
    elif name == "mix":
        below, above, whole = stack.pop(), stack.pop(), stack.pop()
        stack.append(whole + above / below)
    else:
        right, left = stack.pop(), stack.pop()
        stack.append(_BINARY[name](left, right))


def _checked(value: Number) -> Number:
    if isinstance(value, Fraction) and max(value.numerator.bit_length(), value.denominator.bit_length()) > _MAX_BITS:
        raise NoValueError("a fraction with too many digits")
    return value


def _arithmetic(operation: Callable[[Number, Number], Number]) -> Callable[[Number, Number], Number]:
    def checked(left: Number, right: Number) -> Number:
        return _checked(operation(left, right))

    return checked


def _power(base: Number, exponent: Number) -> Number:
    if isinstance(exponent, Fraction) and exponent.denominator == 1:
        if isinstance(base, Fraction):
            return _exact_power(base, exponent.numerator)
        power: Any = base**exponent.numerator
        return _as_number(power)
    if isinstance(exponent, Fraction) and not isinstance(base, complex) and base < 0 and exponent.denominator % 2:
        # "(-8)^(1/3)" is the real root.
        size = float(float(-base) ** float(exponent))
        return -size if exponent.numerator % 2 else size
    if isinstance(base, Fraction) and isinstance(exponent, Fraction) and exponent == Fraction(1, 2):
        return _root_of(base)
    if isinstance(base, complex) or isinstance(exponent, complex):
        return _as_number(complex(base) ** complex(exponent))
    return _as_number(float(base) ** float(exponent))


def _exact_power(base: Fraction, exponent: int) -> Fraction:
    if abs(base) == 1:
        return base if exponent % 2 else Fraction(1)
    if abs(exponent) * max(base.numerator.bit_length(), base.denominator.bit_length()) > _MAX_BITS:
        raise NoValueError("a power with too many digits")
    return Fraction(base**exponent)


def _as_number(value: Any) -> Number:
    """Return the result of a power, whose type depends on its operands."""
    return value if isinstance(value, complex) else float(value)


def _root_of(value: Number) -> Number:
    if isinstance(value, Fraction) and value >= 0:
        above, below = math.isqrt(value.numerator), math.isqrt(value.denominator)
        if above * above == value.numerator and below * below == value.denominator:
            return Fraction(above, below)
    return cmath.sqrt(value)


def _nth_root(index: Number, value: Number) -> Number:
    if not isinstance(index, Fraction) or index.denominator != 1 or not 2 <= index <= 100:
        return _power(value, 1 / index)
    degree = index.numerator
    if degree == 2:
        return _root_of(value)
    if isinstance(value, complex):
        return _as_number(value ** (1 / degree))
    if value < 0 and not degree % 2:
        raise NoValueError("an even root of a negative number")
    size = float(abs(float(value)) ** (1 / degree))
    if isinstance(value, Fraction) and abs(round(size) ** degree) == abs(value):
        return Fraction(round(size) * (1 if value >= 0 else -1))
    return size if value >= 0 else -size


def _factorial(value: Number) -> Number:
    if isinstance(value, Fraction) and value.denominator == 1:
        if not 0 <= value <= _MAX_FACTORIAL:
            raise NoValueError("a factorial with too many digits")
        return Fraction(_whole_factorial(value.numerator))
    return math.gamma(_real(value) + 1)


@lru_cache(maxsize=64)
def _whole_factorial(value: int) -> int:
    return math.factorial(value)


def _binomial(above: Number, below: Number) -> Number:
    if isinstance(above, Fraction) and isinstance(below, Fraction):
        if above.denominator != 1 or below.denominator != 1 or not 0 <= below <= above <= _MAX_FACTORIAL:
            raise NoValueError("no binomial of whole numbers")
        return Fraction(math.comb(above.numerator, below.numerator))
    n, k = _real(above), _real(below)
    return math.gamma(n + 1) / (math.gamma(k + 1) * math.gamma(n - k + 1))


def _permutations(above: Number, below: Number) -> Number:
    return _factorial(above) / _factorial(above - below)


def _real(value: Number) -> float:
    if isinstance(value, complex):
        if value.imag:
            raise NoValueError("a complex number where a real one is needed")
        return value.real
    return float(value)


def _of_complex(function: Callable[[complex], complex]) -> Callable[[Number], Number]:
    def result(value: Number) -> Number:
        found = function(complex(value))
        return found.real if abs(found.imag) < 1e-12 * max(1.0, abs(found.real)) else found

    return result


def _logarithm(value: Number) -> Number:
    if isinstance(value, Fraction) and value > 0:
        return math.log(value.numerator) - math.log(value.denominator)
    return _of_complex(cmath.log)(value)


def _inverse(function: Callable[[complex], complex]) -> Callable[[Number], Number]:
    return _of_complex(lambda value: 1 / function(value))


def _rounded(rounding: Callable[[float], int]) -> Callable[[Number], Number]:
    return lambda value: Fraction(rounding(value if isinstance(value, Fraction) else _real(value)))  # type: ignore[arg-type]


def _whole(value: Number) -> int:
    if not isinstance(value, Fraction) or value.denominator != 1:
        raise NoValueError("no whole number")
    return value.numerator


_CONSTANTS: Final[Mapping[str, Number]] = {"pi": math.pi, "e": math.e, "i": 1j}
_UNARY: Final[Mapping[str, Callable[[Number], Number]]] = {
    "negate": lambda value: -value,
    "!": _factorial,
    "°": lambda value: value * Fraction(1, 180) * math.pi,
    "abs": size_of,
    "sqrt": _root_of,
    "cbrt": lambda value: _nth_root(Fraction(3), value),
    "sin": _of_complex(cmath.sin),
    "cos": _of_complex(cmath.cos),
    "tan": _of_complex(cmath.tan),
    "sec": _inverse(cmath.cos),
    "csc": _inverse(cmath.sin),
    "cot": _inverse(cmath.tan),
    "arcsin": _of_complex(cmath.asin),
    "arccos": _of_complex(cmath.acos),
    "arctan": _of_complex(cmath.atan),
    "sinh": _of_complex(cmath.sinh),
    "cosh": _of_complex(cmath.cosh),
    "tanh": _of_complex(cmath.tanh),
    "ln": _logarithm,
    "log": lambda value: _logarithm(value) / math.log(10),
    "exp": lambda value: _power(math.e, value),
    "floor": _rounded(math.floor),
    "ceil": _rounded(math.ceil),
    "sgn": lambda value: Fraction((_real(value) > 0) - (_real(value) < 0)),
}
_BINARY: Final[Mapping[str, Callable[[Number, Number], Number]]] = {
    "+": _arithmetic(operator.add),
    "-": _arithmetic(operator.sub),
    "*": _arithmetic(operator.mul),
    "/": _arithmetic(operator.truediv),
    "^": _power,
    "root": _nth_root,
    "binom": _binomial,
    "permutations": _permutations,
    "max": lambda left, right: max(left, right, key=_real),
    "min": lambda left, right: min(left, right, key=_real),
    "gcd": lambda left, right: Fraction(math.gcd(_whole(left), _whole(right))),
    "lcm": lambda left, right: Fraction(math.lcm(_whole(left), _whole(right))),
}
