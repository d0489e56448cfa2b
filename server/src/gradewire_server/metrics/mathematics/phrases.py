"""Read mathematical objects in words, numbers in a base, inequalities, rows of objects, and families of values."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from gradewire_server.metrics.mathematics.expressions import Expression
from gradewire_server.metrics.mathematics.objects import (
    Assignment,
    Based,
    Collection,
    Endless,
    Family,
    Interval,
    MathObject,
    RealSet,
    Relation,
)
from gradewire_server.metrics.mathematics.parsing import expression, infinity
from gradewire_server.metrics.values.tokens import VOCABULARY

_WORDS: Final = VOCABULARY["mathematics"]["words"]
_NOTHING: Final = re.compile(_WORDS["nothing"], re.IGNORECASE)
_EVERYTHING: Final = re.compile(_WORDS["everything"], re.IGNORECASE)
_ENDLESS: Final = re.compile(_WORDS["endless"], re.IGNORECASE)
_INFINITY: Final = re.compile(_WORDS["infinity"], re.IGNORECASE)
_PARAMETER: Final = re.compile(r"[kmnlptℓ]")
_MULTIPLES: Final = re.compile(
    rf"(?:{_WORDS['multiples']}) ?(.{{1,20}})\Z|(.{{1,20}}?) ?的(?:所有)?(?:整数)?倍数\Z", re.IGNORECASE
)
_HALF: Final = re.compile(
    r"(?:all |the |any |every |set of )*"
    r"(?:(non-?)?(?:(positive)|negative) (?:real )?(?:numbers?|reals?)(?: x)?"
    r"|ℝ(?:\^|_)?\(?([+-])\)?)",
    re.IGNORECASE,
)
_PARITY: Final = re.compile(
    r"(?:the |all |alle |les |tous |los |todos )*(?:(even|geraden?)|odd|ungeraden?)"
    r" (?:integers|(?:ganzen? )?zahlen|numbers)\Z"
    r"|(?:les |tous |los |todos )*(?:entiers|nombres|enteros|números) (?:(pairs|pares)|impairs|impares)\Z",
    re.IGNORECASE,
)
_BASED: Final = re.compile(
    r"(?:(?P<prefix>0[xX][0-9a-fA-F]{1,32}|0[bB][01]{1,64}|0[oO][0-7]{1,32})"
    r"|\(?(?P<digits>[0-9A-Fa-f ]{1,64}?)\)?(?:_\(?(?P<index>\d{1,2}|[a-z]{3,7})\)?"
    r"| ?\(?,? ?(?:in )?(?:base|basis|Basis) (?P<base>\d{1,2}|two|eight|ten|sixteen)\)?"
    r"| ?\(?(?:in )?(?P<word>binary|octal|decimal|hexadecimal|hex)\)?))\Z"
)
_BASES: Final = {
    "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10,
    "twelve": 12, "sixteen": 16, "hex": 16, "bin": 2, "binary": 2, "octal": 8, "decimal": 10, "hexadecimal": 16,
}  # fmt: skip
_FLIPPED: Final = {"<": ">", ">": "<", "≤": "≥", "≥": "≤", "=": "=", "≠": "≠"}
_PREFIXES: Final = {"x": 16, "b": 2, "o": 8}


def phrase(text: str) -> MathObject | None:
    """Return the object that words name: "no solution", "all real numbers", "infinity", "multiples of 3"; or None."""
    found: MathObject | None = None
    if text in {"∅", "{}", "{ }"} or _NOTHING.fullmatch(text):
        found = RealSet(())
    elif text == "ℝ" or _EVERYTHING.fullmatch(text):
        found = RealSet((Interval(infinite("-∞"), False, infinite("∞"), False),))  # noqa: FBT003
    elif (half := _HALF.fullmatch(text)) is not None:
        found = _half(positive=bool(half[2] or half[3] == "+") is not bool(half[1]), closed=bool(half[1]))
    elif _ENDLESS.fullmatch(text):
        found = Endless()
    elif (sign := _INFINITY.fullmatch(text)) is not None:
        found = infinite("-∞" if sign[1] else "∞")
    else:
        found = _multiples(text)
    return found


def _half(*, positive: bool, closed: bool) -> RealSet | None:
    """Return the positive or negative numbers, with 0 if `closed`."""
    zero = expression("0")
    if zero is None:
        return None
    part = Interval(zero, closed, infinite("∞"), False) if positive else Interval(infinite("-∞"), False, zero, closed)  # noqa: FBT003
    return RealSet((part,))


def _multiples(text: str) -> Family | None:
    """Return the family that "multiples of 3", "even integers" and the like name."""
    member: Expression | None = None
    if (found := _MULTIPLES.match(text)) is not None:
        factor = expression(found[1] or found[2]) or _number_in_words(found[1] or "")
        name = expression("k")
        if factor is not None and name is not None and not factor.names:
            member = factor.times(name)
    elif (found := _PARITY.match(text)) is not None:
        member = expression("2k" if found[1] or found[2] else "2k+1")
    return None if member is None else Family((member,), "k")


def _number_in_words(text: str) -> Expression | None:
    words = VOCABULARY["numerals"]["small"].split()
    word = text.strip().lower()
    return expression(str(words.index(word))) if word in words else None


def based(text: str) -> Based | None:
    """Return the number with a base that a text is: "1010_2", "0xFF", "202 (base 7)"; or None."""
    found = _BASED.match(text)
    if found is None:
        return None
    if found["prefix"]:
        return Based(found["prefix"][2:].upper(), _PREFIXES[found["prefix"][1].lower()])
    name = found["index"] or found["base"] or found["word"]
    base = _BASES.get(name) or (int(name) if name.isdecimal() else 0)
    digits = found["digits"].replace(" ", "").upper()
    if not 2 <= base <= 36 or not digits or any(int(digit, 36) >= base for digit in digits):
        return None
    return Based(digits, base) if any(map(str.isdecimal, digits)) or base > 10 else None


def flat(members: Sequence[MathObject]) -> Iterator[MathObject]:
    """Yield the members, and in place of "±1" both of its values."""
    for member in members:
        if isinstance(member, Collection) and member.opener == "±":
            yield from member.members
        else:
            yield member


def in_row(members: Sequence[MathObject]) -> MathObject | None:
    """Return a list without brackets; in "n = 3, 4, 5" the name belongs to all."""
    first = members[0]
    if isinstance(first, Assignment) and all(isinstance(each, Expression | Collection) for each in members[1:]):
        values = list(flat([first.value, *members[1:]]))
        return Assignment(first.left, Collection(",", tuple(values)))
    if isinstance(first, Assignment) and all(
        isinstance(each, Assignment) and each.base == first.base for each in members
    ):
        values = list(flat([each.value for each in members if isinstance(each, Assignment)]))
        if any(isinstance(each, Family) for each in values):
            return as_family(Collection(",", tuple(values)), "")
        return Assignment(first.base, Collection(",", tuple(values)))
    if all(isinstance(each, Family) for each in members):
        return as_family(Collection(",", tuple(members)), "")
    if isinstance(first, Expression) and all(_excludes(each, first) for each in members[1:]):
        return first
    return Collection(",", tuple(flat(members)))


def _excludes(found: MathObject, member: Expression) -> bool:
    """Return True if an object is "x ≠ 1" for a variable of an expression."""
    return isinstance(found, RealSet) and found.name in member.names and len(found.parts) == 2


def as_family(found: MathObject | None, parameter: str, *, natural: bool = False) -> Family | None:
    """Return the family of an object with a parameter for whole numbers; None if it does not contain the parameter."""
    if isinstance(found, Assignment):
        found = found.value
    members = list(flat(found.members)) if isinstance(found, Collection) else [found]
    expressions: list[Expression] = []
    for member in members:
        inner = member.value if isinstance(member, Assignment) else member
        if isinstance(inner, Family):
            parameter = parameter or inner.parameter
            expressions.extend(each.renamed(inner.parameter, parameter) for each in inner.members)
        elif isinstance(inner, Collection):
            nested = as_family(inner, parameter)
            expressions.extend(nested.members if nested is not None else ())
        elif isinstance(inner, Expression):
            expressions.append(inner)
        else:
            return None
    if not parameter:
        parameters = {name for each in expressions for name in each.names if _PARAMETER.fullmatch(name)}
        parameter = parameters.pop() if len(parameters) == 1 else ""
    if not parameter or not any(parameter in each.names for each in expressions):
        return None
    return Family(tuple(expressions), parameter, natural)


def as_real_set(found: MathObject | None, *, brackets: bool = False) -> RealSet | None:
    """Return the set of real numbers that an object is; with `brackets`, "(1, 2)" is an interval."""
    if isinstance(found, Assignment):
        found = found.value
    if isinstance(found, RealSet):
        return found
    if isinstance(found, Collection):
        return found.as_points if found.opener == "{" else found.as_interval if brackets else None
    return None


def infinite(text: str) -> Expression:
    """Return infinity with the sign of "∞" or "-∞"; raise ValueError for any other text."""
    found = infinity(text)
    if found is None:
        raise ValueError(f"not infinite: {text}")
    return found


def inequality(parts: Sequence[Expression], signs: Sequence[str]) -> MathObject | None:
    """Return the set or the relation that two or three sides and the signs between them form; or None."""
    rising, falling = set(signs) <= {"<", "≤"}, set(signs) <= {">", "≥"}
    if not any(part.names for part in parts):
        return Collection(",", tuple(parts)) if (rising or falling) and len(parts) > 2 else None
    if len(parts) == 2:
        return _two_sides(parts[0], signs[0], parts[1])
    if len(parts) != 3 or not (rising or falling):
        return None
    low, name, high = parts if rising else parts[::-1]
    closed = [sign in "≤≥" for sign in (signs if rising else signs[::-1])]
    between = _is_ray(name, low) and _is_ray(name, high)
    return RealSet((Interval(low, closed[0], high, closed[1]),), name.text) if between else None


def _two_sides(left: Expression, sign: str, right: Expression) -> MathObject | None:
    if _is_ray(left, right):
        return _ray(sign, right, left.text)
    if _is_ray(right, left):
        return _ray(_FLIPPED[sign], left, right.text)
    return Relation(right, _FLIPPED[sign], left) if sign in ">≥" else Relation(left, sign, right)


def _is_ray(name: Expression, bound: Expression) -> bool:
    return len(name.names) == 1 and name.text == next(iter(name.names)) and not bound.names


def _ray(sign: str, bound: Expression, name: str) -> RealSet | None:
    low, high = infinite("-∞"), infinite("∞")
    parts = {
        ">": (Interval(bound, False, high, False),),  # noqa: FBT003
        "≥": (Interval(bound, True, high, False),),  # noqa: FBT003
        "<": (Interval(low, False, bound, False),),  # noqa: FBT003
        "≤": (Interval(low, False, bound, True),),  # noqa: FBT003
        "≠": (Interval(low, False, bound, False), Interval(bound, False, high, False)),  # noqa: FBT003
    }
    return RealSet(parts[sign], name) if sign in parts else None
