"""Reads the demonstrations of a prompt file: solved items, by kind of question."""

from collections.abc import Mapping
from typing import Final

from gradewire_server.domain.quoting import shortened
from gradewire_server.metrics.judged.prompts.file import Demonstration, Variant
from gradewire_server.metrics.judged.prompts.shapes import (
    COMPARE,
    DEMONSTRATION_SETS,
    PAIR_SETS,
    SYNTHETIC,
)
from gradewire_server.metrics.judged.prompts.table import PromptError, Table

_MAX_DEMONSTRATIONS: Final = 64


def read_demonstrations(
    table: Table | None, variants: Mapping[str, Variant], metric: str
) -> dict[str, tuple[Demonstration, ...]]:
    """Reads all sets; each demonstration answers every step of the variants that show demonstrations.

    Args:
        table: The file's table of them, if it has one.
        variants: The file's variants.
        metric: Of the file. Demonstrations of `synthetic` have `answer` in place of `references` and `prediction`,
            those of `compare` have `first` and `second` in place of `prediction`.

    Raises:
        PromptError: Names the set, the demonstration and the key.
    """
    if table is None:
        return {}
    sets = PAIR_SETS if metric == COMPARE else DEMONSTRATION_SETS
    found: dict[str, tuple[Demonstration, ...]] = {}
    for kind in table.keys():  # noqa: SIM118 - a Table is no mapping
        if kind not in sets:
            raise PromptError(table.at(kind), f"is not known; the sets are {', '.join(sorted(sets))}")
        rows = table.tables(kind)
        if len(rows) > _MAX_DEMONSTRATIONS:
            raise PromptError(table.at(kind), f"has {len(rows)} demonstrations; {_MAX_DEMONSTRATIONS} are the most")
        found[kind] = tuple(_demonstration(row, variants, metric) for row in rows)
    return found


def _demonstration(table: Table, variants: Mapping[str, Variant], metric: str) -> Demonstration:
    answers: dict[str, str] = {}
    steps = [step for variant in variants.values() if variant.demonstrations for step in variant.steps]
    for step in steps:
        answer = " ".join(table.text(step.name).split())
        if step.labels and answer not in step.labels:
            raise PromptError(table.at(step.name), f"must be one of {shortened(', '.join(step.labels))}")
        answers[step.name] = answer
    synthetic = metric == SYNTHETIC
    prediction = "first" if metric == COMPARE else "prediction"
    demonstration = Demonstration(
        question=table.text("question"),
        references=(table.text("answer"),) if synthetic else table.texts("references"),
        prediction="" if synthetic else table.text(prediction),
        caption="" if synthetic else table.text("caption", ""),
        answers=answers,
        second=table.text("second") if metric == COMPARE else "",
    )
    table.finish()
    return demonstration
