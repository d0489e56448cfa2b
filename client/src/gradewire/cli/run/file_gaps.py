"""What no row of a file has, and which metrics can therefore grade none of it."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from gradewire.metric_types import METRIC_TYPES
from gradewire.metric_types.words import Cider

_ONE_ENTRY = "the rows have one question with its references, over which no n-gram is rarer than another"


@dataclass(frozen=True, slots=True)
class _Seen:
    """What some item has: a question, so many references; and how many differ in these, counted up to two."""

    question: bool
    references: int
    entries: int


def metrics_without_rows(items: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Metrics that, with their defaults, could grade none of these items, each with what is missing.

    Items are read as far as it takes to see that nothing is missing. Where none has references, no metric is named:
    then every row says so itself.
    """
    most = max(kind.least_references for kind in METRIC_TYPES.values())
    seen = _look_through(items, most)
    if not seen.entries:
        return {}
    missing = {}
    for name, kind in METRIC_TYPES.items():
        if kind.needs_question and not seen.question:
            missing[name] = "no row has a question"
        elif seen.references < kind.least_references:
            missing[name] = f"no row has {kind.least_references} references, one answer of each annotator"
    if seen.entries == 1:
        missing[Cider.name] = _ONE_ENTRY
    return missing


def _look_through(items: Iterable[Mapping[str, Any]], most_references: int) -> _Seen:
    question, references, entries = False, 0, set()
    for item in items:
        given = item.get("references")
        if not given:
            continue
        asked = str(item.get("question") or "").strip()
        question = question or bool(asked)
        references = max(references, len(given))
        entries.add(json.dumps([asked, given], default=repr))
        if question and references >= most_references and len(entries) > 1:
            break
    return _Seen(question, references, len(entries))
