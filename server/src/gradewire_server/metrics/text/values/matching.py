"""Which values of a reference an answer has, contradicts or leaves out."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from gradewire_server.metrics.text.values.amounts.quantities import Quantity, contradicts
from gradewire_server.metrics.text.values.dates.clock import Time
from gradewire_server.metrics.text.values.dates.dates import Asked, Date
from gradewire_server.metrics.text.values.formulas.formula import Formula
from gradewire_server.metrics.text.values.formulas.relations import Relation
from gradewire_server.metrics.text.values.kinds import Kind, Outcome
from gradewire_server.metrics.text.values.reading import values_of
from gradewire_server.metrics.text.values.signs.lists import in_order, ordered_list
from gradewire_server.metrics.text.values.signs.locants import Locant
from gradewire_server.metrics.text.values.signs.ordinals import Ordinal
from gradewire_server.metrics.text.values.signs.symbols import Symbol
from gradewire_server.metrics.text.values.value import Value
from gradewire_server.metrics.text.values.writing.plain_form import plain

_ASKED: Final = re.compile(r"\b(?:what|which|in)\s+(year|month|day|date)\b", re.IGNORECASE)
_FINENESS: Final = {"year": Asked.YEAR, "month": Asked.MONTH, "day": Asked.DAY, "date": Asked.DAY}
_MAX_QUESTION: Final = 2_048
_SCALES_ASKED: Final = re.compile(r"\bin (thousand|million|billion)s?\b", re.IGNORECASE)
_SCALES: Final = {"thousand": 1e3, "million": 1e6, "billion": 1e9}


@dataclass(frozen=True, slots=True)
class ValueMatch:
    """What an answer has of a reference's values.

    Attributes:
        wanted: Values of the reference that the question does not say already; all of its values where the question
            says every one of them. 0: the reference has none, and there is nothing to compare.
        found: How many of them the answer has.
        contradicted: How many it has another value of the same kind and unit in place of.
        missing: How many it has neither way; `wanted` is the sum of the three.
        coarser: How many of the missing ones are dates that it has less exactly: the year of a day.
        kinds: Kinds of the wanted values, each with the worst that became of one: CONTRADICTED, MISSING, else FOUND.
        extra: Values of the answer, of those kinds, that neither question nor reference has.
    """

    wanted: int
    found: int
    contradicted: int
    missing: int
    coarser: int
    kinds: Mapping[Kind, Outcome]
    extra: int


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a question says of the values that are asked for."""

    values: tuple[Value, ...]
    fineness: Asked
    scale: float
    years: frozenset[int]


NOTHING: Final = ValueMatch(0, 0, 0, 0, 0, {}, 0)
"""A reference without values."""
_WORST: Final = (Outcome.FOUND, Outcome.MISSING, Outcome.CONTRADICTED)


def match_values(question: str, reference: str, answer: str) -> ValueMatch:
    """Compares the values of an answer with those of a reference.

    Args:
        question: May be empty. It tells which values go without saying, and how fine a date is asked for.
        reference: Of these texts as much is read as `values_of` reads.
        answer: Not read where the reference has no values.
    """
    ordered = ordered_list(plain(reference), question[:_MAX_QUESTION])
    if ordered is not None:
        outcome = {True: Outcome.FOUND, False: Outcome.CONTRADICTED, None: Outcome.MISSING}[
            in_order(ordered, plain(answer))
        ]
        counts = [outcome is each for each in (Outcome.FOUND, Outcome.CONTRADICTED, Outcome.MISSING)]
        return ValueMatch(1, *map(int, counts), 0, {Kind.LIST: outcome}, 0)
    of_reference = values_of(reference)
    if not of_reference:
        return NOTHING
    asked = _asked(question)
    beyond = tuple(value for value in of_reference if not any(_says(known, value, asked) for known in asked.values))
    wanted = beyond or of_reference
    said = values_of(answer)
    outcomes = [_outcome(value, said, asked) for value in wanted]
    kinds: dict[Kind, Outcome] = {}
    for value, outcome in zip(wanted, outcomes, strict=True):
        kinds[value.kind] = max(kinds.get(value.kind, Outcome.FOUND), outcome, key=_WORST.index)
    known = (*asked.values, *of_reference)
    return ValueMatch(
        wanted=len(wanted),
        found=outcomes.count(Outcome.FOUND),
        contradicted=outcomes.count(Outcome.CONTRADICTED),
        missing=outcomes.count(Outcome.MISSING),
        coarser=sum(
            outcome is Outcome.MISSING and any(_coarser(each, value) for each in said)
            for value, outcome in zip(wanted, outcomes, strict=True)
        ),
        kinds=kinds,
        extra=sum(value.kind in kinds and not any(_says(value, other, asked) for other in known) for value in said),
    )


def _asked(question: str) -> _Asked:
    begin = question[:_MAX_QUESTION]
    fineness = _ASKED.search(begin)
    scale = _SCALES_ASKED.search(begin)
    values = values_of(begin)
    years = (value.content.year for value in values if isinstance(value.content, Date))
    return _Asked(
        values,
        _FINENESS[fineness[1].lower()] if fineness else Asked.ANY,
        _SCALES[scale[1].lower()] if scale else 1.0,
        frozenset(year for year in years if year is not None),
    )


def _outcome(wanted: Value, said: tuple[Value, ...], asked: _Asked) -> Outcome:
    if any(_says(value, wanted, asked) for value in said):
        return Outcome.FOUND
    others = (value for value in said if not any(_says(value, known, asked) for known in asked.values))
    return Outcome.CONTRADICTED if any(_contradicts(value, wanted) for value in others) else Outcome.MISSING


def _says(value: Value, reference: Value, asked: _Asked) -> bool:
    """Whether an answer's value says what the reference's does."""
    ours, theirs = value.content, reference.content
    match ours, theirs:
        case Date(), Date():
            return ours.says(theirs, asked.fineness, asked.years)
        case Time(), Time():
            return ours.says(theirs)
        case Ordinal(), Ordinal():
            return ours.says(theirs)
        case Ordinal(), Quantity():
            return value.whole and theirs.unit is None and ours.number == f"{theirs.value:g}"
        case Quantity(), Ordinal():
            return value.whole and ours.unit is None and theirs.number == f"{ours.value:g}"
        case (Symbol(), Symbol()) | (Locant(), Locant()) | (Relation(), Relation()):
            return bool(ours.says(theirs))
        case Formula(), Formula():
            return ours.equals(theirs)
        case _:
            pass
    amount, wanted = _number(ours), _number(theirs)
    if amount is None or wanted is None:
        return False
    if amount.says(wanted):
        return True
    return asked.scale > 1 and (amount.says(_scaled(wanted, asked.scale)) or _scaled(amount, asked.scale).says(wanted))


def _coarser(value: Value, reference: Value) -> bool:
    ours, theirs = value.content, reference.content
    return isinstance(ours, Date) and isinstance(theirs, Date) and ours.coarser_than(theirs)


def _number(content: object) -> Quantity | None:
    """A quantity, or a year that may be a number as well."""
    if isinstance(content, Quantity):
        return content
    if isinstance(content, Relation):
        solution = content.solution
        return None if solution is None else Quantity(solution, 0.0, signed=solution < 0)
    return Quantity(float(content.number), 1.0) if isinstance(content, Date) and content.number is not None else None


def _scaled(quantity: Quantity, scale: float) -> Quantity:
    return Quantity(
        quantity.value * scale,
        quantity.place * scale,
        quantity.unit,
        quantity.unit_name,
        direction=quantity.direction,
        signed=quantity.signed,
    )


def _contradicts(value: Value, reference: Value) -> bool:
    """Whether an answer's value, which is not the reference's, stands in its place."""
    match value.content, reference.content:
        case Date() as ours, Date() as theirs:
            return ours.contradicts(theirs)
        case Time(), Time():
            return True
        case Ordinal() as ours, Ordinal() as theirs:
            return ours.alike(theirs)
        case Symbol() as ours, Symbol() as theirs:
            return ours.contradicts(theirs)
        case (Locant(), Locant()):
            return True
        case (Formula() as ours, Formula() as theirs) | (Relation() as ours, Relation() as theirs):
            return bool(ours.names & theirs.names)
        case Quantity() as ours, Quantity() as theirs:
            return contradicts(theirs, ours)
        case _:
            return False
