"""Formulas, parsed into a list of steps and evaluated at points: arithmetic on floats, and nothing else."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isclose, isfinite
from typing import Final

from gradewire_server.metrics.text.values.formulas.runs import Sign

_POINTS: Final = 5
_ENOUGH: Final = 3
"""Points at which two formulas must have values, and equal ones."""
_TOLERANCE: Final = 1e-9
_MAX_FACTORIAL: Final = 170
_PRECEDENCE: Final = {"+": 1, "-": 1, "*": 2, "/": 2, "negate": 3, "implied": 3, "^": 4, "call": 5}
_FUNCTIONS: Final[Mapping[str, Callable[[float], float]]] = {
    "sqrt": math.sqrt, "cbrt": math.cbrt, "sin": math.sin, "cos": math.cos, "tan": math.tan, "ln": math.log,
    "log": math.log10, "log10": math.log10, "log2": math.log2, "exp": math.exp, "abs": abs,
}  # fmt: skip
_OPERATORS: Final[Mapping[str, Callable[[float, float], float]]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "implied": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "^": lambda a, b: a**b,
}

Step = tuple[str, float]
"""What to do, and a number for "number"."""


@dataclass(frozen=True)
class Formula:
    """A formula.

    Attributes:
        steps: In the order in which a stack machine does them.
        names: Its variables.
    """

    steps: tuple[Step, ...]
    names: frozenset[str]

    @cached_property
    def values(self) -> tuple[float | None, ...]:
        """Its values at fixed points, the same for all formulas; one for a formula without variables.

        None where it has none there: a root of a negative number, a division by zero, a number beyond floats.
        """
        return tuple(_value(self.steps, point) for point in range(_POINTS if self.names else 1))

    @property
    def constant(self) -> float | None:
        """Its value where it has no variables; None otherwise, and where it has none."""
        return None if self.names else self.values[0]

    def equals(self, other: "Formula") -> bool:
        """Whether both have the same values wherever both have some."""
        if self.names != other.names:
            return False
        pairs = [
            (ours, theirs) for ours, theirs in zip(self.values, other.values, strict=True) if None not in {ours, theirs}
        ]
        return len(pairs) >= min(_ENOUGH, len(self.values)) and all(
            isclose(ours or 0.0, theirs or 0.0, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE) for ours, theirs in pairs
        )

    def minus(self, other: "Formula") -> "Formula":
        """The difference of two formulas."""
        return Formula((*self.steps, *other.steps, ("-", 0.0)), self.names | other.names)


def parse(signs: Sequence[Sign]) -> Formula | None:
    """The formula that tokens write, None where they write none. Linear in their number, without recursion."""
    steps: list[Step] = []
    waiting: list[str] = []
    names: set[str] = set()
    operand = False  # whether the last token ended an operand
    for sign in signs:
        if operand and sign.opens:
            _push("implied", waiting, steps)
            operand = False
        if sign.kind == "number":
            steps.append(("number", float(sign.text.replace(",", ""))))
            operand = True
        elif sign.kind == "constant" or sign.text == "e":
            steps.append(("number", math.pi if sign.kind == "constant" else math.e))
            operand = True
        elif sign.kind == "name":
            names.update(sign.text)
            steps.extend((letter, 0.0) for letter in sign.text)
            steps.extend([("*", 0.0)] * (len(sign.text) - 1))
            operand = True
        elif sign.kind == "function":
            waiting.append(sign.text)
        elif sign.text == "(":
            waiting.append("(")
        elif sign.text == ")":
            if not operand or not _close(waiting, steps):
                return None
        elif sign.text == "!" and operand:
            steps.append(("!", 0.0))
        elif not operand:
            if sign.text not in {"-", "+"}:
                return None
            if sign.text == "-":
                waiting.append("negate")
        else:
            _push(sign.text, waiting, steps)
            operand = False
    if not operand:
        return None
    while waiting:
        step = waiting.pop()
        if step == "(":
            return None
        steps.append((step, 0.0))
    return Formula(tuple(steps), frozenset(names))


def _push(operator: str, waiting: list[str], steps: list[Step]) -> None:
    """Puts an operator on the stack, and does what binds closer before it; powers bind to the right."""
    while waiting and waiting[-1] != "(":
        above = _PRECEDENCE.get(waiting[-1], _PRECEDENCE["call"])
        mine = _PRECEDENCE[operator]
        if above < mine or (above == mine and operator == "^"):
            break
        steps.append((waiting.pop(), 0.0))
    waiting.append(operator)


def _close(waiting: list[str], steps: list[Step]) -> bool:
    while waiting:
        step = waiting.pop()
        if step == "(":
            if waiting and waiting[-1] in _FUNCTIONS:
                steps.append((waiting.pop(), 0.0))
            return True
        steps.append((step, 0.0))
    return False


def _value(steps: Sequence[Step], point: int) -> float | None:
    stack: list[float] = []
    try:
        for name, number in steps:
            _do(name, number, point, stack)
    except (ArithmeticError, ValueError, IndexError, TypeError):
        return None
    return stack[0] if len(stack) == 1 and isfinite(stack[0]) else None


def _do(name: str, number: float, point: int, stack: list[float]) -> None:
    if name == "number":
        stack.append(number)
    elif name in _OPERATORS:
        right, left = stack.pop(), stack.pop()
        result = _OPERATORS[name](left, right)
        if isinstance(result, complex):
            raise ValueError("a power that is no real number")
        stack.append(result)
    elif name == "negate":
        stack.append(-stack.pop())
    elif name == "!":
        value = stack.pop()
        if value % 1 or not 0 <= value <= _MAX_FACTORIAL:
            raise ValueError("no factorial")
        stack.append(float(math.factorial(int(value))))
    elif name in _FUNCTIONS:
        stack.append(_FUNCTIONS[name](stack.pop()))
    else:
        # Positive and unlike each other, for every letter at every point.
        stack.append(0.5 + (ord(name) * 37 + point * 101) % 97 / 61)
