"""What the rows of a file lack, and which metrics are therefore not for it."""

import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from gradewire.metric_types import METRIC_TYPES
from gradewire.metric_types.words import Cider

_ONE_ENTRY = "the rows have one question with its references, over which no n-gram is rarer than another"


@dataclass(frozen=True, slots=True)
class _Seen:
    """Whether an item has a question, the fewest references of any, and how many items differ, counted up to two."""

    question: bool
    references: int
    entries: int


def metrics_not_for(items: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Metrics that, with their defaults, are not for these items, each with what is missing.

    What needs a question is named where no item has one: beside rows that have one, a row without is at fault and says
    so itself. What compares annotators is named where one item has too few references, for that is no fault. Where no
    item has references, nothing is named: every row says so.
    """
    seen = _look_through(items)
    if not seen.entries:
        return {}
    missing = {}
    for name, kind in METRIC_TYPES.items():
        if kind.needs_question and not seen.question:
            missing[name] = "no row has a question"
        elif seen.references < kind.least_references:
            missing[name] = (
                f"some rows have fewer than {kind.least_references} references, and it compares annotators: name it to "
                "have it for the others"
            )
    if seen.entries == 1:
        missing[Cider.name] = _ONE_ENTRY
    return missing


def _look_through(items: Iterable[Mapping[str, Any]]) -> _Seen:
    question, references = False, sys.maxsize
    entries: set[str] = set()
    for item in items:
        given = item.get("references")
        if not given:
            continue
        asked = str(item.get("question") or "").strip()
        question = question or bool(asked)
        references = min(references, len(given))
        if len(entries) < 2:
            entries.add(json.dumps([asked, given], default=repr))
    return _Seen(question, references, len(entries))
