"""Which values of a reference an answer has, contradicts or leaves out."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from gradewire_server.metrics.text.values.comparing import MAX_QUESTION, Question, coarser, in_place_of, opposed, says
from gradewire_server.metrics.text.values.kinds import Kind, Outcome
from gradewire_server.metrics.text.values.reading import values_of
from gradewire_server.metrics.text.values.signs.lists import OrderedList, in_order, ordered_list
from gradewire_server.metrics.text.values.value import Value
from gradewire_server.metrics.text.values.writing.plain_form import plain

MAX_WANTED: Final = 16
"""Values of a reference that are compared, the first ones."""


@dataclass(frozen=True, slots=True)
class ValueMatch:
    """What an answer has of a reference's values.

    Attributes:
        wanted: Values of the reference that the question does not say already; all of its values where the question
            says every one of them. 0: the reference has none, and there is nothing to compare.
        found: How many of them the answer has.
        contradicted: How many it has another value of the same kind and unit in place of, denies, or says of another
            thing than is asked.
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

    @property
    def outcome(self) -> Outcome | None:
        """CONTRADICTED where one value is, FOUND where all are found, else MISSING; None where there is none."""
        if not self.wanted:
            return None
        if self.contradicted:
            return Outcome.CONTRADICTED
        return Outcome.FOUND if self.found == self.wanted else Outcome.MISSING


NOTHING: Final = ValueMatch(0, 0, 0, 0, 0, {}, 0)
"""A reference without values."""
_NO_NOUNS: Final = frozenset({"is", "was", "has", "does", "as", "this", "others", "its", "his", "us", "times"})
_PARTED: Final = re.compile(r"(?<![\d.,]\d{3})(?<=\d), (?=\d{3}(?!\d))")
_WORST: Final = (Outcome.FOUND, Outcome.MISSING, Outcome.CONTRADICTED)


class ValueMatcher:
    """Compares one answer with any number of references; question and answer are read once, and when first needed."""

    def __init__(self, question: str, answer: str) -> None:
        self._question = question
        self._answer = answer

    @cached_property
    def _asked(self) -> Question:
        return Question.of(self._question)

    @cached_property
    def _said(self) -> tuple[Value, ...]:
        return values_of(self._answer)

    @cached_property
    def _joined(self) -> tuple[Value, ...]:
        """Values of the answer when blanks behind commas part no numbers: "1, 776" may be 1,776, and may be two."""
        written = plain(self._answer)
        joined = _PARTED.sub(",", written)
        return () if joined == written else values_of(joined)

    @cached_property
    def _beyond(self) -> tuple[Value, ...]:
        """Values of the answer that the question does not say already."""
        return tuple(value for value in self._said if not self._asked.has(value))

    def match(self, reference: str) -> ValueMatch:
        """What the answer has of a reference's values; of these the first MAX_WANTED count."""
        ordered = ordered_list(plain(reference), self._question[:MAX_QUESTION])
        if ordered is not None:
            return _match_list(ordered, self._answer)
        of_reference = values_of(reference)[:MAX_WANTED]
        if not of_reference:
            return NOTHING
        wanted = tuple(value for value in of_reference if not self._asked.has(value)) or of_reference
        wanted = tuple(value for value in wanted if not value.denied) or wanted  # "1912, not 1913" wants 1912
        outcomes = [self._outcome(value) for value in wanted]
        kinds: dict[Kind, Outcome] = {}
        for value, outcome in zip(wanted, outcomes, strict=True):
            kinds[value.kind] = max(kinds.get(value.kind, Outcome.FOUND), outcome, key=_WORST.index)
        return ValueMatch(
            wanted=len(wanted),
            found=outcomes.count(Outcome.FOUND),
            contradicted=outcomes.count(Outcome.CONTRADICTED),
            missing=outcomes.count(Outcome.MISSING),
            coarser=sum(
                outcome is Outcome.MISSING and any(coarser(each, value) for each in self._said)
                for value, outcome in zip(wanted, outcomes, strict=True)
            ),
            kinds=kinds,
            extra=sum(
                value.kind in kinds and not any(says(value, each, self._asked) for each in of_reference)
                for value in self._beyond
            ),
        )

    def _outcome(self, wanted: Value) -> Outcome:
        equal = [value for value in self._said if says(value, wanted, self._asked)]
        if any(self._stands_for(value, wanted) for value in equal):
            return Outcome.FOUND
        if any(says(value, wanted, self._asked) for value in self._joined):
            return Outcome.FOUND
        if equal or any(in_place_of(value, wanted) for value in self._beyond if not value.denied):
            return Outcome.CONTRADICTED
        return Outcome.MISSING

    def _stands_for(self, value: Value, wanted: Value) -> bool:
        """Whether an equal value is said of what is asked: not denied, no fall for a rise, of no other thing."""
        if value.denied and not wanted.denied and not self._asked.denies:
            return False
        if opposed(value, wanted, self._asked):
            return False
        if value.on_top is not None and wanted.on_top is None and value is not self._said[0]:
            return not self._asked.words.isdisjoint(value.on_top)
        return not self._of_another(value, wanted)

    def _of_another(self, value: Value, wanted: Value) -> bool:
        """Whether it counts other things than are asked for, which the answer counts too: "six legs and eight eyes"."""
        counted = self._asked.counted
        if not counted or not value.noun.endswith("s") or value.noun in {wanted.noun, *counted, *_NO_NOUNS}:
            return False
        return any(other.noun in counted and other not in self._asked.values for other in self._said)


def match_values(question: str, reference: str, answer: str) -> ValueMatch:
    """Compares the values of an answer with those of a reference.

    Args:
        question: May be empty. It tells which values go without saying, how fine a date is asked for, in what a number
            is counted ("in millions"), and whether the order of a list counts.
        reference: Of these texts as much is read as `values_of` reads.
        answer: Not read where the reference has no values.
    """
    return ValueMatcher(question, answer).match(reference)


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
