"""Find formulas and relations in a text, and compare their values at fixed points."""

import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import isclose, isfinite
from typing import Final, TypeAlias

from gradewire_server.metrics.values.quantities import Quantity
from gradewire_server.metrics.values.tokens import VOCABULARY
from gradewire_server.metrics.values.units import NAMES, SYMBOLS

MAX_TOKENS: Final = 64

_TOKEN: Final = re.compile(
    r"(?P<number>\d{1,3}(?:,\d{3}){1,5}(?![\d,])|\d{1,40}(?:\.\d{1,40})?(?:[eE][+-]?\d{1,3}(?!\w))?|(?<![\w.])\.\d{1,40})"
    r"|(?P<function>(?:sqrt|cbrt|sin|cos|tan|ln|log10|log2|log|exp|abs)(?![a-z]))|(?P<constant>pi(?![a-z]))"
    r"|(?P<name>[A-Za-z\u03b1-\u03c9]{1,3}(?![^\W\d_]|'))"
    r"|(?P<relation><=|>=|!=|==|=|<(?!-)|>)|(?P<operator>\*\*|[-+*/^!])(?!>)|(?P<bracket>[()])|(?P<other>[^\W\d_]+'?|[^\w\s]|_)"
)
_UNLIKELY_NAMES: Final = frozenset(VOCABULARY["formulas"]["no_names"].split())

_POINTS: Final = 5
_MIN_POINTS: Final = 3
_TOLERANCE: Final = 1e-9
_MAX_FACTORIAL: Final = 170
_PRECEDENCE: Final = {"+": 1, "-": 1, "*": 2, "/": 2, "negate": 3, "implied": 3, "^": 4, "call": 5}
_FUNCTIONS: Final[Mapping[str, Callable[[float], float]]] = {
    "sqrt": math.sqrt, "cbrt": math.cbrt, "sin": math.sin, "cos": math.cos, "tan": math.tan, "ln": math.log,
    "log": math.log10, "log10": math.log10, "log2": math.log2, "exp": math.exp, "abs": abs,
}  # fmt: skip
_OPERATORS: Final[Mapping[str, Callable[[float, float], float]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "implied": operator.mul,
    "/": operator.truediv,
    "^": operator.pow,
}

_SIGNED: Final = frozenset("^*/=<>+!")
_PI: Final = re.compile(r"\bpi\b")
_FORMULA_NAMES: Final = ("sqrt", "log", "ln", "sin", "cos", "tan", "e^")
_UNIT: Final = re.compile(r" ?(%|\u00b0|[^\W\d_]{1,20})")
_UNIT_BEFORE: Final = re.compile(r"\d\s?[^\W\d_]{1,4}\s\Z")
_VARIABLES: Final = frozenset(VOCABULARY["formulas"]["variables"])
"""Letters that are variables after a number. Other letters after a number are units or scales: "5m", "10k"."""
_COEFFICIENT: Final = re.compile(r"\d[a-z](?![a-z])")
_PLAIN_ONLY: Final = frozenset({"-", "/"})


@dataclass(frozen=True, slots=True)
class Sign:
    """A token of a formula.

    Attributes:
        kind: The name of a group in _TOKEN.
        text: The token's text; "**" becomes "^", and "==" becomes "=".
    """

    kind: str
    text: str
    start: int
    end: int

    @property
    def opens(self) -> bool:
        """True if an operand can begin with this token."""
        return self.kind in {"number", "function", "constant", "name"} or self.text == "("

    @property
    def closes(self) -> bool:
        """True if an operand can end with this token."""
        return self.kind in {"number", "constant", "name"} or self.text in {")", "!"}


def runs_of(text: str) -> Iterator[list[Sign]]:
    """Yield each sequence of 2 to MAX_TOKENS operands and operators in a text."""
    run: list[Sign] = []
    for match in _TOKEN.finditer(text):
        sign = _sign(match)
        if sign is None or (run and _are_separate(run[-1], sign)):
            yield from _trimmed(run)
            run = []
        if sign is not None:
            run.append(sign)
    yield from _trimmed(run)


def _sign(match: re.Match[str]) -> Sign | None:
    kind, text = match.lastgroup or "other", match[0]
    if kind == "other" or (kind == "name" and text.lower() in _UNLIKELY_NAMES):
        return None
    if (
        text == "x"
        and match.string[match.start() - 1 : match.start()].isdigit()
        and match.string[match.end() : match.end() + 1].isdigit()
    ):
        kind, text = "operator", "*"
    if kind == "name" and len(text) > 1 and not text.islower():
        return None
    return Sign(kind, {"**": "^", "==": "="}.get(text, text), match.start(), match.end())


def _are_separate(last: Sign, sign: Sign) -> bool:
    """Return True if two tokens belong to different formulas. The tokens of "sqrt 2" or of "4 pi" belong together."""
    if last.end == sign.start or not (last.closes and sign.opens):
        return False
    return not (sign.kind in {"constant", "function"} and last.kind == "number") and last.kind != "function"


def _trimmed(run: list[Sign]) -> Iterator[list[Sign]]:
    if len(run) > 4 * MAX_TOKENS or (run and run[0].text == "/"):  # "kg/m^3" is a unit
        return
    first, last = 0, len(run)
    while first < last and (run[first].kind == "relation" or run[first].text in {"*", "/", "^", "!", ")", "+"}):
        first += 1
    while last > first and (run[last - 1].kind in {"relation", "function"} or run[last - 1].text in "*/^+-("):
        last -= 1
    if 1 < last - first <= MAX_TOKENS:
        yield run[first:last]


Step = tuple[str, float]
"""The name of an operation or a variable, and the value if the name is "number"."""


@dataclass(frozen=True)
class Formula:
    """A formula: its steps for a stack machine, and the names of its variables."""

    steps: tuple[Step, ...]
    names: frozenset[str]

    @cached_property
    def values(self) -> tuple[float | None, ...]:
        """The values at points that all formulas share. A formula without variables has only one value.

        A value is None after a root of a negative number, a division by zero, or an overflow.
        """
        return tuple(_value(self.steps, point) for point in range(_POINTS if self.names else 1))

    @property
    def constant(self) -> float | None:
        """The value of a formula without variables; None if the formula has variables or no value."""
        return None if self.names else self.values[0]

    def equals(self, other: "Formula") -> bool:
        """Return True if both formulas have equal values at all points at which both have values."""
        if self.names != other.names:
            return False
        pairs = [
            (ours, theirs) for ours, theirs in zip(self.values, other.values, strict=True) if None not in {ours, theirs}
        ]
        return len(pairs) >= min(_MIN_POINTS, len(self.values)) and all(
            isclose(ours or 0.0, theirs or 0.0, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE) for ours, theirs in pairs
        )

    def contradicts(self, reference: "Formula") -> bool:
        """Return True if both formulas share a variable."""
        return bool(self.names & reference.names)

    def minus(self, other: "Formula") -> "Formula":
        """Return the difference of two formulas."""
        return Formula((*self.steps, *other.steps, ("-", 0.0)), self.names | other.names)


def parse(signs: Sequence[Sign]) -> Formula | None:
    """Parse tokens, in linear time and without recursion; return None if they do not form a formula."""
    parser = _Parser()
    return parser.formula() if all(map(parser.takes, signs)) else None


class _Parser:
    """A parser that puts operators after their operands (the shunting-yard algorithm)."""

    def __init__(self) -> None:
        self._steps: list[Step] = []
        self._waiting: list[str] = []
        self._names: set[str] = set()
        self._operand = False  # True if the last token ended an operand

    def takes(self, sign: Sign) -> bool:
        """Add a token; return False if it is invalid at this position."""
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
        else:  # "ab" means "a times b"
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
            raise ValueError("a power that is not a real number")
        stack.append(result)
    elif name in _UNARY_STEPS:
        stack.append(_UNARY_STEPS[name](stack.pop()))
    else:
        # The value of a variable is positive, and differs between letters and between points.
        stack.append(0.5 + (ord(name) * 37 + point * 101) % 97 / 61)


def _factorial(value: float) -> float:
    if value % 1 or not 0 <= value <= _MAX_FACTORIAL:
        raise ValueError("no factorial")
    return float(math.factorial(int(value)))


_UNARY_STEPS: Final[Mapping[str, Callable[[float], float]]] = {**_FUNCTIONS, "negate": operator.neg, "!": _factorial}


@dataclass(frozen=True)
class Relation:
    """A relation with "<", "<=", "=" or "!="; "x > 3" is stored as "3 < x"."""

    left: Formula
    operator: str
    right: Formula

    @classmethod
    def of(cls, left: Formula, sign: str, right: Formula) -> "Relation":
        """Return a relation; reverse it if the sign is ">" or ">="."""
        if sign in {">", ">="}:
            return cls(right, sign.replace(">", "<"), left)
        return cls(left, sign, right)

    @property
    def solution(self) -> float | None:
        """The value of the only variable in a relation like "x = 3/2"; None for other relations."""
        if self.operator != "=" or len(self.left.steps) != 1 or len(self.left.names) != 1:
            return None
        return self.right.constant

    @property
    def names(self) -> frozenset[str]:
        """The variables of both sides."""
        return self.left.names | self.right.names

    def contradicts(self, reference: "Relation") -> bool:
        """Return True if both relations share a variable."""
        return bool(self.names & reference.names)

    def equals(self, reference: "Relation") -> bool:
        """Return True if the two relations are equal, or multiples of each other."""
        if self.operator != reference.operator or self.names != reference.names:
            return False
        ours, theirs = self.left.minus(self.right).values, reference.left.minus(reference.right).values
        pairs = [(a, b) for a, b in zip(ours, theirs, strict=True) if a is not None and b is not None and b]
        if not pairs:
            return False
        factor = pairs[0][0] / pairs[0][1]
        if not factor or (factor < 0 and self.operator in {"<", "<="}):
            return False
        return all(isclose(a, factor * b, rel_tol=_TOLERANCE) for a, b in pairs)


FormulaFound: TypeAlias = tuple[int, int, Quantity | Formula | Relation]
"""A formula's start and end in a text, and its content."""


def formulas_of(text: str, characters: AbstractSet[str]) -> Iterator[FormulaFound]:
    """Yield the formulas in a plain text, except plain numbers like "3/4" and "2 * 10^8"."""
    if not _may_contain_formula(text, characters):
        return
    for run in runs_of(text):
        relations = [index for index, sign in enumerate(run) if sign.kind == "relation"]
        if not relations:
            yield from _side(run, text)
        else:
            yield from _relation_or_sides(run, relations, text)


def _may_contain_formula(text: str, characters: AbstractSet[str]) -> bool:
    return (
        not _SIGNED.isdisjoint(characters)
        or any(name in text for name in _FORMULA_NAMES)
        or ("pi" in text and _PI.search(text) is not None)
        or ("-" in characters and _COEFFICIENT.search(text) is not None)
    )


def _side(run: Sequence[Sign], text: str, *, alone: bool = True) -> Iterator[FormulaFound]:
    if alone and (_is_number(run) or _is_unit_of_number(run, text)):
        return
    formula = parse(run)
    if formula is None:
        return
    start, end = run[0].start, run[-1].end
    if formula.names:
        if len(run) > 1 and _is_mathematical(run):
            yield start, end, formula
    elif (value := formula.constant) is not None:
        yield start, end, Quantity(value, 0.0, signed=value < 0)


def _relation_or_sides(run: Sequence[Sign], relations: Sequence[int], text: str) -> Iterator[FormulaFound]:
    if _is_unit_of_number(run, text):  # "24 h = 1440 min"
        return
    bounds = [-1, *relations, len(run)]
    sides = [run[first + 1 : last] for first, last in pairwise(bounds)]
    operators = [run[index].text for index in relations]
    left, right = parse(sides[0]), parse(sides[-1])
    if len(sides) == 2 and left is not None and right is not None and (left.names or right.names):
        lone = len(left.steps) == 1 and bool(left.names)
        if operators[0] == "=" and right.names and _is_function_of_variable(sides[0]):
            yield from _side(sides[1], text, alone=False)
        elif not (lone and _ends_with_unit(sides[1], text)):
            yield run[0].start, run[-1].end, Relation.of(left, operators[0], right)
    elif set(operators) == {"="} and not (len(sides[-1]) == 1 and _ends_with_unit(sides[-1], text)):
        # In "8 * 12 = 96 m", only the result has a unit.
        for side in sides:
            if len(side) > 1:
                yield from _side(side, text)


def _is_function_of_variable(side: Sequence[Sign]) -> bool:
    return len(side) == 4 and side[0].kind == "name" and side[1].text == "(" and side[2].kind == "name"


def _is_number(run: Sequence[Sign]) -> bool:
    """Return True if a run is a number, fraction, range or power of ten, which `quantities` parses."""
    if any(sign.kind not in {"number", "operator"} for sign in run):
        return False
    operators = [sign.text for sign in run if sign.kind == "operator"]
    if "!" in operators:
        return False
    if set(operators) <= _PLAIN_ONLY:
        return True
    texts = [sign.text for sign in run]
    signless = texts[1:] if texts[0] in {"-", "+"} else texts
    if len(signless) == 1:
        return True
    return "10" in signless and signless[-1] != "10" and set(operators) <= {"*", "^", "-"} and signless.count("^") == 1


def _is_unit_of_number(run: Sequence[Sign], text: str) -> bool:
    if run[0].text in SYMBOLS and _UNIT_BEFORE.search(text, max(0, run[0].start - 8), run[0].start) is not None:
        return True  # "3 m s^-2"
    before = text[max(0, run[0].start - 2) : run[0].start].rstrip()
    return run[0].kind == "name" and (before[-1:].isdecimal() or before[-1:] == ")")


def _is_mathematical(run: Sequence[Sign]) -> bool:
    """Return True if the run's letters are variables: "2x", "a + b", "x^2", but not "w/o" and "I - a"."""
    signs = {sign.text for sign in run}
    if signs & {"^", "*", "+"} and (len(run) > 2):
        return True
    coefficient = any(
        first.kind == "number" and second.kind == "name" and second.text in _VARIABLES
        for first, second in pairwise(run)
    )
    return coefficient and bool(signs & {"^", "*", "+", "-", "/", "("})


def _ends_with_unit(side: Sequence[Sign], text: str) -> bool:
    unit = _UNIT.match(text, side[-1].end)
    if side[-1].kind != "number" or unit is None:
        return False
    return not unit[1].isalpha() or unit[1] in SYMBOLS or unit[1].lower() in NAMES
