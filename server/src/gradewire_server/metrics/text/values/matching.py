"""Which values of a reference an answer has, contradicts or leaves out."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from gradewire_server.metrics.text.values.comparing import MAX_QUESTION, Question, coarser, in_place_of, says
from gradewire_server.metrics.text.values.kinds import Kind, Outcome
from gradewire_server.metrics.text.values.reading import values_of
from gradewire_server.metrics.text.values.signs.lists import OrderedList, in_order, ordered_list
from gradewire_server.metrics.text.values.value import Value
from gradewire_server.metrics.text.values.writing.plain_form import plain


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
    ordered = ordered_list(plain(reference), question[:MAX_QUESTION])
    if ordered is not None:
        return _match_list(ordered, answer)
    of_reference = values_of(reference)
    if not of_reference:
        return NOTHING
    asked = Question.of(question)
    wanted = tuple(value for value in of_reference if not asked.has(value)) or of_reference
    said = values_of(answer)
    outcomes = [_outcome(value, said, asked) for value in wanted]
    kinds: dict[Kind, Outcome] = {}
    for value, outcome in zip(wanted, outcomes, strict=True):
        kinds[value.kind] = max(kinds.get(value.kind, Outcome.FOUND), outcome, key=_WORST.index)
    return ValueMatch(
        wanted=len(wanted),
        found=outcomes.count(Outcome.FOUND),
        contradicted=outcomes.count(Outcome.CONTRADICTED),
        missing=outcomes.count(Outcome.MISSING),
        coarser=sum(
            outcome is Outcome.MISSING and any(coarser(each, value) for each in said)
            for value, outcome in zip(wanted, outcomes, strict=True)
        ),
        kinds=kinds,
        extra=sum(
            value.kind in kinds and not asked.has(value) and not any(says(value, each, asked) for each in of_reference)
            for value in said
        ),
    )


def _match_list(ordered: OrderedList, answer: str) -> ValueMatch:
    """A list is one value: all of its items, in their order."""
    kept = in_order(ordered, plain(answer))
    outcome = Outcome.MISSING if kept is None else Outcome.FOUND if kept else Outcome.CONTRADICTED
    return ValueMatch(
        wanted=1,
        found=int(outcome is Outcome.FOUND),
        contradicted=int(outcome is Outcome.CONTRADICTED),
        missing=int(outcome is Outcome.MISSING),
        coarser=0,
        kinds={Kind.LIST: outcome},
        extra=0,
    )


def _outcome(wanted: Value, said: tuple[Value, ...], asked: Question) -> Outcome:
    if any(says(value, wanted, asked) for value in said):
        return Outcome.FOUND
    others = (value for value in said if not asked.has(value))
    return Outcome.CONTRADICTED if any(in_place_of(value, wanted) for value in others) else Outcome.MISSING
