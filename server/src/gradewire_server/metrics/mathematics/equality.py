"""Decide when two mathematical objects are equal, as a question wants it."""

import re
from collections.abc import Sequence
from fractions import Fraction
from math import gcd
from typing import Final

from gradewire_server.metrics.mathematics.expressions import Expression
from gradewire_server.metrics.mathematics.notation import notation
from gradewire_server.metrics.mathematics.objects import (
    Assignment,
    Based,
    Collection,
    Endless,
    Family,
    MathObject,
    Matrix,
    Opaque,
    RealSet,
    Relation,
    Style,
)
from gradewire_server.metrics.mathematics.phrases import as_family, as_real_set
from gradewire_server.metrics.mathematics.values import close, size_of

_MAX_DEPTH: Final = 6
_LARGEST: Final = 1e100
_CONSTANTS: Final = frozenset("cCkKdDaAbB")
"""Names of arbitrary constants, unless the question has them."""
_UNITS: Final = ("i", "j", "k")

_LOWEST: Final = re.compile(
    r"lowest terms|simplest form|irreducible|simplified fraction|fully (?:reduced|simplified)|reduced fraction|"
    r"reduced form|vollständig gekürzt|fraction irréductible|fracción irreducible|最简分数",
    re.IGNORECASE,
)
_FACTOR: Final = re.compile(
    r"(?:^|[.,:;] |\b(?:and|then|please|completely|fully) )factor(?:i[sz]e)?\b|factored form|in factors|faktorisiere|"
    r"factorise[rz]|factoriza|因式分解",
    re.IGNORECASE,
)
_COMPLETELY: Final = re.compile(r"\b(?:completely|fully|as far as possible|vollständig)\b", re.IGNORECASE)
_EXPAND: Final = re.compile(
    r"\bexpand|multiply out|expanded form|ausmultipl|développe|desarrolla|expande", re.IGNORECASE
)
_SIMPLE_FRACTION: Final = re.compile(r"-?\(*(\d{1,18})\)?/\(?(\d{1,18})\)*")
_WHOLE_FRACTION: Final = re.compile(r"\(\((\w+)\)/\((\w+)\)\)")
_PRODUCT: Final = re.compile(r"\)\(|\)\^|(?<![a-z])\w\(|\)[a-zA-Z]")
_RESTATES: Final = re.compile(
    r"\b(?:simplify|rationali[sz]e|compute|evaluate|calculate|factor|expand|reduce|vereinfache|berechne|simplifie|calcul|"
    r"simplifica|calcula)",
    re.IGNORECASE,
)


def same(reference: MathObject, answer: MathObject, style: Style, depth: int = 0) -> bool:
    """Return True if an answer's object equals a reference's object."""
    if depth > _MAX_DEPTH:
        return False
    found: bool | None = None
    for way in _WAYS:
        found = way(reference, answer, style, depth)
        if found is not None:
            break
    return bool(found)


def _alike(reference: MathObject, answer: MathObject, style: Style, depth: int) -> bool | None:
    """Compare two objects of one type."""
    found: bool | None = None
    match reference, answer:
        case Expression(), Expression():
            found = _expressions(reference, answer, style)
        case Assignment(), Assignment():
            found = _assignments(reference, answer, style, depth)
        case Collection(), Collection():
            found = _collections(reference, answer, style, depth)
        case RealSet(), RealSet():
            found = answer.equals(reference)
        case Family(), Family():
            found = answer.equals(reference)
        case Relation(), Relation():
            found = answer.equals(reference)
        case (Matrix(), Matrix()) if len(reference.rows) > 1 and len(answer.rows) > 1:
            found = answer.equals(reference, exact=style.exact)
        case Opaque(), Opaque():
            found = reference.text == answer.text
        case Endless(), Endless():
            found = True
        case _:
            pass
    return found


def _bases(reference: MathObject, answer: MathObject, style: Style, depth: int) -> bool | None:
    """Compare numbers of which at least one has a base."""
    del depth
    theirs, ours = (each.value if isinstance(each, Assignment) else each for each in (reference, answer))
    return _based(theirs, ours, style) if isinstance(theirs, Based) or isinstance(ours, Based) else None


def _equations(reference: MathObject, answer: MathObject, style: Style, depth: int) -> bool | None:
    """Compare "y = 2x" with an equation, and an expression with an identity."""
    found: bool | None = None
    match reference, answer:
        case Assignment(relation=Relation() as theirs), Relation():
            found = answer.equals(theirs)
        case Relation(), Assignment(relation=Relation() as ours):
            found = ours.equals(reference)
        case Expression(), Relation(sign="="):
            found = answer.left.equals(answer.right) and same(reference, answer.right, style, depth + 1)
        case _:
            pass
    return found


def _named_values(reference: MathObject, answer: MathObject, style: Style, depth: int) -> bool | None:
    """Compare values of which at least one has a name, and families of values."""
    if isinstance(reference, Family):
        family = as_family(answer, "")
        return family is not None and family.equals(reference)
    if isinstance(reference, Assignment):
        return same(reference.value, answer, style, depth + 1)
    return same(reference, _bound(answer, reference), style, depth + 1) if isinstance(answer, Assignment) else None


def _mixed(reference: MathObject, answer: MathObject, style: Style, depth: int) -> bool | None:
    """Compare objects of two types."""
    found: bool | None = None
    match reference, answer:
        case (Matrix(), Collection(members=[Collection(), *_])):
            rows = [row.members if isinstance(row, Collection) else None for row in answer.members]
            found = len(rows) == len(reference.rows) and all(
                ours is not None and _in_order(theirs, ours, style, depth)
                for theirs, ours in zip(reference.rows, rows, strict=True)
            )
        case (Matrix() | Collection(), Matrix() | Expression()) | (Matrix(), Collection()):
            found = _vectors(reference, answer, style, depth)
        case (RealSet(), Collection()) | (Collection(), RealSet()):
            ours, theirs = (
                as_real_set(each, brackets=not style.point) or _points(each) for each in (answer, reference)
            )
            found = ours is not None and theirs is not None and ours.equals(theirs)
        case (Expression(), Collection() | Matrix()) if reference.names and reference.names <= set(_UNITS):
            entries = _entries(answer)
            components = None if entries is None else _components(reference, len(entries))
            found = bool(entries and components) and _in_order(components or (), entries or (), style, depth)
        case Expression(), Collection():
            found = bool(answer.members) and all(same(reference, each, style, depth + 1) for each in answer.members)
        case (Endless(), Expression(infinite=1)) | (Expression(infinite=1), Endless()):
            found = True
        case _:
            pass
    return found


_WAYS: Final = (_alike, _bases, _equations, _named_values, _mixed)


def _points(found: MathObject) -> RealSet | None:
    return found.as_points if isinstance(found, Collection) else None


def _expressions(reference: Expression, answer: Expression, style: Style) -> bool:
    reference, answer = _with_imaginary(reference), _with_imaginary(answer)
    ours, theirs = answer.names - reference.names, reference.names - answer.names
    free = len(ours) == len(theirs) == 1 and ours | theirs <= _CONSTANTS
    if free and len(reference.names) > 1 and (theirs == {"C"} or (ours | theirs).isdisjoint(style.names)):
        answer = answer.renamed(next(iter(ours)), next(iter(theirs)))
    return answer.equals(reference, exact=style.exact)


def _with_imaginary(found: Expression) -> Expression:
    """Return an expression whose only name is the imaginary unit j with that unit."""
    if found.names != {"j"}:
        return found
    steps = tuple(("i", 0) if step == ("=j", 0) else step for step in found.steps)
    return Expression(steps, frozenset(), found.text)


def _bound(answer: Assignment, reference: MathObject) -> MathObject:
    """Return the value of a function's definition, in the only variable of the reference."""
    names = reference.names if isinstance(reference, Expression) else frozenset[str]()
    if isinstance(answer.value, Expression) and answer.variable and len(names) == 1:
        return answer.value.renamed(answer.variable, next(iter(names)))
    return answer.value


def _assignments(reference: Assignment, answer: Assignment, style: Style, depth: int) -> bool:
    if reference.relation is not None and answer.relation is not None and answer.relation.equals(reference.relation):
        return True
    value = answer.value
    if isinstance(value, Expression) and answer.variable and reference.variable:
        value = value.renamed(answer.variable, reference.variable)
    names = [each.base for each in (reference, answer)]
    constant = isinstance(reference.value, Expression) and not reference.value.names
    if constant and names[0] != names[1] and all(len(name) == 1 for name in names):
        return False
    return same(reference.value, value, style, depth + 1)


def _named(found: Collection) -> dict[str, MathObject] | None:
    """Return the values of names ("x = 3, y = 5") by name; None if not all members have different names."""
    named = {each.left: each.value for each in found.members if isinstance(each, Assignment)}
    return named if len(named) == len(found.members) > 1 else None


def _collections(reference: Collection, answer: Collection, style: Style, depth: int) -> bool:
    reference, answer = _only_tuple(reference), _only_tuple(answer)
    theirs, ours = _named(reference), _named(answer)
    if theirs is not None and ours is not None:
        return theirs.keys() == ours.keys() and all(same(theirs[name], ours[name], style, depth + 1) for name in theirs)
    if theirs is not None or ours is not None:
        wanted = reference.members if theirs is None else list(theirs.values())
        said = answer.members if ours is None else [ours[name] for name in sorted(ours)]
        return _in_order(wanted, said, style, depth)
    if _brackets_count(reference, answer, style):
        first, second = reference.as_interval, answer.as_interval
        return first is not None and second is not None and second.equals(first)
    if style.direction and (wanted_entries := _entries(reference)) and (said_entries := _entries(answer)):
        return len(wanted_entries) == len(said_entries) and _are_parallel(wanted_entries, said_entries)
    return _members(reference, answer, style, depth)


def _only_tuple(found: Collection) -> Collection:
    """Return the tuple of a set with nothing else, such as "{(2; -1)}"."""
    only = found.members[0] if found.opener == "{" and len(found.members) == 1 else None
    return only if isinstance(only, Collection) and only.opener in {"(", "⟨"} else found


def _brackets_count(reference: Collection, answer: Collection, style: Style) -> bool:
    """Return True if two pairs in different brackets are intervals."""
    if style.point or style.ordered or (reference.opener, reference.closer) == (answer.opener, answer.closer):
        return False
    return reference.as_interval is not None and answer.as_interval is not None


def _members(reference: Collection, answer: Collection, style: Style, depth: int) -> bool:
    """Compare members: in order for a tuple and for a list whose order counts, else as sets."""
    if reference.opener == "{" and answer.opener in {"(", "["} and len(answer.members) == 2:
        return False
    is_tuple = reference.opener in {"(", "⟨"}
    if is_tuple and answer.opener in {"{", "±"}:
        return False
    if is_tuple or (style.ordered and reference.opener in {",", "["}):
        return _in_order(reference.members, answer.members, style, depth)
    return _as_sets(reference.members, answer.members, style, depth)


def _in_order(reference: Sequence[MathObject], answer: Sequence[MathObject], style: Style, depth: int) -> bool:
    return len(reference) == len(answer) and all(
        same(theirs, ours, style, depth + 1) for theirs, ours in zip(reference, answer, strict=True)
    )


def _as_sets(reference: Sequence[MathObject], answer: Sequence[MathObject], style: Style, depth: int) -> bool:
    return all(any(same(theirs, ours, style, depth + 1) for ours in answer) for theirs in reference) and all(
        any(same(theirs, ours, style, depth + 1) for theirs in reference) for ours in answer
    )


def _vectors(reference: MathObject, answer: MathObject, style: Style, depth: int) -> bool:
    """Compare a row, a column, a tuple and "i + 2j + 3k"; a list of one member is its member."""
    if isinstance(reference, Collection) and len(reference.members) == 1 and isinstance(answer, Expression):
        return same(reference.members[0], answer, style, depth + 1)
    theirs, ours = _entries(reference), _entries(answer)
    if theirs is None:
        return False
    if ours is None and isinstance(answer, Expression):
        ours = _components(answer, len(theirs))
    if ours is None or len(ours) != len(theirs):
        return False
    return _in_order(theirs, ours, style, depth) or (style.direction and _are_parallel(theirs, ours))


def _are_parallel(reference: Sequence[MathObject], answer: Sequence[MathObject]) -> bool:
    """Return True if one vector is the other, multiplied by a number that is not 0."""
    theirs, ours = (
        [each.value if isinstance(each, Expression) else None for each in row] for row in (reference, answer)
    )
    pairs = [(a, b) for a, b in zip(ours, theirs, strict=True) if a is not None and b is not None]
    if len(pairs) != len(theirs) or any(size_of(each) > _LARGEST for pair in pairs for each in pair):
        return False
    if not any(a for a, _ in pairs) or not any(b for _, b in pairs):
        return False
    return all(close(a * d, b * c) for a, b in pairs for c, d in pairs)


def _entries(found: MathObject) -> Sequence[MathObject] | None:
    if isinstance(found, Matrix):
        return found.vector
    return found.members if isinstance(found, Collection) and found.opener in "([⟨" else None


def _components(found: Expression, length: int) -> Sequence[MathObject] | None:
    """Return the coefficients of i, j and k; None if the expression is no sum of their multiples."""
    if found.names - set(_UNITS) or length not in {2, 3}:
        return None
    values: list[MathObject] = []
    for unit in _UNITS[:length]:
        fixed = {each: Fraction(each == unit) for each in _UNITS}
        value = found.with_numbers(fixed)
        if value is None:
            return None
        values.append(value)
    return values


def _based(reference: MathObject, answer: MathObject, style: Style) -> bool:
    match reference, answer:
        case Based(), Based():
            return reference.value == answer.value and (not style.base or reference.base == answer.base)
        case (Based() as number, Expression() as other) | (Expression() as other, Based() as number):
            if style.base == number.base:
                return other.text.lstrip("0") == number.digits.lstrip("0")
            return not style.base and isinstance(other.value, Fraction) and other.value == number.value
        case _:
            return False


def forbidden_form(question: str, reference: MathObject, answer: MathObject, claim: str) -> bool:
    """Return True if an equal answer has not the form that the question asks for.

    Such forms are lowest terms, factors, an expanded sum, and any other form than the question's own.
    """
    ours = answer.value if isinstance(answer, Assignment) else answer
    theirs = reference.value if isinstance(reference, Assignment) else reference
    if not isinstance(ours, Expression) or not isinstance(theirs, Expression):
        return False
    if _LOWEST.search(question) and (fraction := _SIMPLE_FRACTION.fullmatch(ours.text)) is not None:
        return gcd(int(fraction[1]), int(fraction[2])) > 1
    if _FACTOR.search(question) and not _is_sum(theirs.text):
        return _is_sum(ours.text) or (
            _COMPLETELY.search(question) is not None and _factors(ours.text) < _factors(theirs.text)
        )
    if _EXPAND.search(question) and not _has_product(theirs.text):
        return _has_product(ours.text)
    return _RESTATES.search(question) is not None and _restates(question, claim, ours, theirs)


def _is_sum(text: str) -> bool:
    depth = 0
    for at, sign in enumerate(text):
        depth += (sign == "(") - (sign == ")")
        if sign in "+-" and not depth and at and text[at - 1] not in "*/^(":
            return True
    return False


def _factors(text: str) -> int:
    """Return the number of factors in brackets, with their powers in digits."""
    found = depth = 0
    for at, sign in enumerate(text):
        found += sign == "(" and not depth and text[at - 1 : at] != "^"
        depth += (sign == "(") - (sign == ")")
        power = re.match(r"\)\^\(?(\d)", text[at : at + 4]) if not depth and sign == ")" else None
        found += int(power[1]) - 1 if power else 0
    return found


def _has_product(text: str) -> bool:
    return _PRODUCT.search(_WHOLE_FRACTION.sub("1", text)) is not None


def _restates(question: str, claim: str, ours: Expression, theirs: Expression) -> bool:
    """Return True if an answer only repeats a formula of the question, and the reference does not."""
    asked, said = ("".join((notation(text) or "").split()) for text in (question[:1_000], claim))
    return len(said) > 2 and ours.text != theirs.text and not ours.single and said in asked and theirs.text not in asked
