"""What the rows of a file lack, and which metrics are therefore not for it."""

import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from gradewire.metric_types import METRIC_TYPES

_ALL_ALIKE = "all rows have the same references, over which no n-gram is rarer than another"


@dataclass(frozen=True, slots=True)
class _Seen:
    """What the items with references have.

    Attributes:
        question: Whether an item has a question.
        references: The fewest of any item.
        reference_lists: How many lists of them differ, up to two.
        digits: Whether every item has a digit among its references.
    """

    question: bool
    references: int
    reference_lists: int
    digits: bool


def metrics_not_for(items: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Metrics that, with their defaults, are not for these items, each with what is missing.

    What needs a question is named where no item has one: beside rows that have one, a row without is at fault and says
    so itself. What compares annotators is named where one item has too few references, for that is no fault; so is what
    compares values where one item has no digit in its references. Where no item has references, nothing is named: every
    row says so.
    """
    seen = _look_through(items)
    if not seen.reference_lists:
        return {}
    missing = {}
    for name, kind in METRIC_TYPES.items():
        if kind.asks_judge():
            continue  # no part of all
        if kind.needs_corpus and seen.reference_lists == 1:
            missing[name] = _ALL_ALIKE
        elif kind.needs_question and not seen.question:
            missing[name] = "no row has a question"
        elif seen.references < kind.least_references:
            missing[name] = (
                f"some rows have fewer than {kind.least_references} references, and it compares annotators: name it to "
                "have it for the others"
            )
        elif kind.needs_values and not seen.digits:
            missing[name] = (
                "some rows have no number in their references, and it compares dates, quantities and the like: name it "
                "to have it for the others"
            )
    return missing


def _look_through(items: Iterable[Mapping[str, Any]]) -> _Seen:
    question, references, digits = False, sys.maxsize, True
    lists: set[str] = set()
    for item in items:
        given = item.get("references")
        if not given:
            continue
        question = question or bool(str(item.get("question") or "").strip())
        references = min(references, len(given))
        digits = digits and any(sign.isdigit() for text in given for sign in str(text))
        if len(lists) < 2:
            lists.add(json.dumps(sorted(set(map(str, given)))))
    return _Seen(question, references, len(lists), digits)
