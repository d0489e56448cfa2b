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


def metrics_without_rows(items: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Metrics that, with their defaults, are not for these items, each with what is missing.

    A question must be nowhere; who has some questions and not others has rows at fault, which say so. But a row with a
    single reference is no fault, only not what a metric of several annotators is for. Where no item has references, no
    metric is named: then every row says so itself.
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
                f"some rows have less than {kind.least_references} references, and it compares annotators: name it to "
                "have it for the others"
            )
    if seen.entries == 1:
        missing[Cider.name] = _ONE_ENTRY
    return missing


def _look_through(items: Iterable[Mapping[str, Any]]) -> _Seen:
    question, references, entries = False, sys.maxsize, set()
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
