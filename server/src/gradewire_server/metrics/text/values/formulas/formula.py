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
    parser = _Parser()
    return parser.formula() if all(map(parser.takes, signs)) else None


class _Parser:
    """Puts operators behind their operands (the shunting-yard algorithm)."""

    def __init__(self) -> None:
        self._steps: list[Step] = []
        self._waiting: list[str] = []
        self._names: set[str] = set()
        self._operand = False  # whether the last token ended an operand

    def takes(self, sign: Sign) -> bool:
        """Goes on with a token; False where it cannot stand there."""
        if self._operand and sign.opens:
            self._push("implied")
        if sign.kind in {"number", "constant", "name"}:
            self._take_operand(sign)
            return True
        if sign.kind == "function" or sign.text == "(":
            self._waiting.append(sign.text)
            return True
        if sign.text == ")":
            return self._operand and self._close()
        return self._take_operator(sign.text)

    def formula(self) -> Formula | None:
        """The formula, None where something is open."""
        if not self._operand or "(" in self._waiting:
            return None
        self._steps.extend((step, 0.0) for step in reversed(self._waiting))
        return Formula(tuple(self._steps), frozenset(self._names))

    def _take_operand(self, sign: Sign) -> None:
        self._operand = True
        if sign.kind == "number":
            self._steps.append(("number", float(sign.text.replace(",", ""))))
        elif sign.kind == "constant" or sign.text == "e":
            self._steps.append(("number", math.pi if sign.kind == "constant" else math.e))
        else:  # "ab" is a times b
            self._names.update(sign.text)
            self._steps.extend((letter, 0.0) for letter in sign.text)
            self._steps.extend([("*", 0.0)] * (len(sign.text) - 1))

    def _take_operator(self, operator: str) -> bool:
        if self._operand and operator == "!":
            self._steps.append(("!", 0.0))
        elif self._operand:
            self._push(operator)
        elif operator == "-":
            self._waiting.append("negate")
        else:
            return operator == "+"
        return True

    def _push(self, operator: str) -> None:
        """Puts an operator on the stack, and does what binds closer before it; powers bind to the right."""
        self._operand = False
        mine = _PRECEDENCE[operator]
        while self._waiting and self._waiting[-1] != "(":
            above = _PRECEDENCE.get(self._waiting[-1], _PRECEDENCE["call"])
            if above < mine or (above == mine and operator == "^"):
                break
            self._steps.append((self._waiting.pop(), 0.0))
        self._waiting.append(operator)

    def _close(self) -> bool:
        while self._waiting:
            step = self._waiting.pop()
            if step == "(":
                if self._waiting and self._waiting[-1] in _FUNCTIONS:
                    self._steps.append((self._waiting.pop(), 0.0))
                return True
            self._steps.append((step, 0.0))
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
