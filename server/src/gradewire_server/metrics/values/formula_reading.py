"""Formulas of a text as values: constants are quantities, the others expressions and relations."""

import re
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from gradewire_server.metrics.values.formulas import Formula, Relation, Sign, parse, runs_of
from gradewire_server.metrics.values.quantities import Quantity
from gradewire_server.metrics.values.units import NAMES, SYMBOLS

_SIGNED: Final = frozenset("^*/=<>+!")
_PI: Final = re.compile(r"\bpi\b")
_NAMED: Final = ("sqrt", "log", "ln", "sin", "cos", "tan", "e^")
"""What formulas have; most texts have nothing of it, and are not looked at further."""
_RELATED: Final = ("than ", "at least ", "at most ", " below ", " above ", " under ", " over ", "equal to ")
_SPOKEN: Final = re.compile(
    r"(?<![\w'])([a-zA-Z\u03b1-\u03c9]) (?:is|must be|has to be|should be) (not equal to|less than or equal to|"
    r"greater than or equal to|less than|smaller than|below|under|greater than|more than|larger than|above|over|"
    r"at least|at most|no more than|no less than|equal to) (?=-?\.?\d|[a-z](?![a-z]))"
)
_SIGNS: Final = {
    "not equal to": "!=", "less than or equal to": "<=", "greater than or equal to": ">=", "less than": "<",
    "smaller than": "<", "below": "<", "under": "<", "greater than": ">", "more than": ">", "larger than": ">",
    "above": ">", "over": ">", "at least": ">=", "at most": "<=", "no more than": "<=", "no less than": ">=",
    "equal to": "=",
}  # fmt: skip
_UNIT: Final = re.compile(r" ?(%|\u00b0|[^\W\d_]{1,20})")
_VARIABLES: Final = frozenset("xyznabctruvwpqijXYZNABC\u03b1\u03b2\u03b3\u03b8\u03bb")
"""Behind a number; other letters there are units and scales: "5m", "10k"."""
_COEFFICIENT: Final = re.compile(r"\d[a-z](?![a-z])")
_PLAIN_ONLY: Final = frozenset({"-", "/"})


@dataclass(frozen=True, slots=True)
class FormulaFound:
    """A formula in a text.

    Attributes:
        start: Where it begins.
        end: Where it ends.
        content: What it says.
    """

    start: int
    end: int
    content: Quantity | Formula | Relation


def with_signs(text: str) -> str:
    """The text with "x is at least 3" as "x >= 3"."""
    if not any(word in text for word in _RELATED):
        return text
    return _SPOKEN.sub(lambda found: f"{found[1]} {_SIGNS[found[2]]} ", text)


def formulas_of(text: str, characters: AbstractSet[str]) -> Iterator[FormulaFound]:
    """The formulas of a text in plain form, except those that are written as numbers are: "3/4", "2 * 10^8".

    Args:
        text: In plain form.
        characters: The text's.
    """
    if _SIGNED.isdisjoint(characters) and not _has_names(text) and not _multiplied(text, characters):
        return
    for run in runs_of(text):
        relations = [index for index, sign in enumerate(run) if sign.kind == "relation"]
        if not relations:
            yield from _side(run, text)
        else:
            yield from _related(run, relations, text)


def _has_names(text: str) -> bool:
    return any(name in text for name in _NAMED) or ("pi" in text and _PI.search(text) is not None)


def _multiplied(text: str, characters: AbstractSet[str]) -> bool:
    """Whether a number stands before a letter, as in "2x - 3"."""
    return "-" in characters and _COEFFICIENT.search(text) is not None


def _side(run: Sequence[Sign], text: str, *, alone: bool = True) -> Iterator[FormulaFound]:
    """A formula that is no relation."""
    if alone and (_is_number(run) or _is_unit(run, text)):
        return
    formula = parse(run)
    if formula is None:
        return
    start, end = run[0].start, run[-1].end
    if formula.names:
        if len(run) > 1 and _is_mathematical(run):
            yield FormulaFound(start, end, formula)
    elif (value := formula.constant) is not None:
        signed = value < 0
        yield FormulaFound(start, end, Quantity(value, 0.0, signed=signed))


def _related(run: Sequence[Sign], relations: Sequence[int], text: str) -> Iterator[FormulaFound]:
    """Sides of equations and inequalities."""
    bounds = [-1, *relations, len(run)]
    sides = [run[first + 1 : last] for first, last in pairwise(bounds)]
    operators = [run[index].text for index in relations]
    left, right = parse(sides[0]), parse(sides[-1])
    if len(sides) == 2 and left is not None and right is not None and (left.names or right.names):
        lone = len(left.steps) == 1 and bool(left.names)
        if operators[0] == "=" and right.names and _is_call(sides[0]):
            yield from _side(sides[1], text, alone=False)
        elif not (lone and _followed_by_unit(sides[1], text)):
            yield FormulaFound(run[0].start, run[-1].end, Relation.of(left, operators[0], right))
    elif set(operators) == {"="}:
        for side in sides:
            if len(side) > 1:
                yield from _side(side, text)


def _is_call(side: Sequence[Sign]) -> bool:
    """Whether a side is the name of a function, "f(x)"."""
    return len(side) == 4 and side[0].kind == "name" and side[1].text == "(" and side[2].kind == "name"


def _is_number(run: Sequence[Sign]) -> bool:
    """Whether a run is a number, fraction, range or power of ten, which are read with what stands beside them."""
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


def _is_unit(run: Sequence[Sign], text: str) -> bool:
    """Whether a run is the unit of a number before it: "4 km^2", "9.8 m/s^2"."""
    before = text[max(0, run[0].start - 2) : run[0].start].rstrip()
    return run[0].kind == "name" and before[-1:].isdecimal()


def _is_mathematical(run: Sequence[Sign]) -> bool:
    """Whether letters are variables: "2x", "a + b", "x^2", but not "w/o" and "I - a"."""
    signs = {sign.text for sign in run}
    if signs & {"^", "*", "+"} and (len(run) > 2):
        return True
    coefficient = any(
        first.kind == "number" and second.kind == "name" and second.text in _VARIABLES
        for first, second in pairwise(run)
    )
    return coefficient and bool(signs & {"^", "*", "+", "-", "/", "("})


def _followed_by_unit(side: Sequence[Sign], text: str) -> bool:
    """Whether an equation ends in a number whose unit stands behind it: "v = 10 m/s"."""
    unit = _UNIT.match(text, side[-1].end)
    if side[-1].kind != "number" or unit is None:
        return False
    return not unit[1].isalpha() or unit[1] in SYMBOLS or unit[1].lower() in NAMES
