"""Reads the demonstrations of a prompt file: solved items, by kind of question."""

from collections.abc import Mapping
from typing import Final

from gradewire_server.domain.quoting import shortened
from gradewire_server.metrics.judged.prompts.file import Demonstration, Variant
from gradewire_server.metrics.judged.prompts.shapes import DEMONSTRATION_SETS
from gradewire_server.metrics.judged.prompts.table import PromptError, Table

_MAX_DEMONSTRATIONS: Final = 64


def read_demonstrations(
    table: Table | None, variants: Mapping[str, Variant], *, synthetic: bool
) -> dict[str, tuple[Demonstration, ...]]:
    """Reads all sets; each demonstration answers every step of the variants that show demonstrations.

    Args:
        table: The file's table of them, if it has one.
        variants: The file's variants.
        synthetic: Demonstrations have `answer` in place of `references` and `prediction`.

    Raises:
        PromptError: Names the set, the demonstration and the key.
    """
    if table is None:
        return {}
    found: dict[str, tuple[Demonstration, ...]] = {}
    for kind in table.keys():  # noqa: SIM118 - a Table is no mapping
        if kind not in DEMONSTRATION_SETS:
            raise PromptError(table.at(kind), f"is not known; the sets are {', '.join(sorted(DEMONSTRATION_SETS))}")
        rows = table.tables(kind)
        if len(rows) > _MAX_DEMONSTRATIONS:
            raise PromptError(table.at(kind), f"has {len(rows)} demonstrations; {_MAX_DEMONSTRATIONS} are the most")
        found[kind] = tuple(_demonstration(row, variants, synthetic=synthetic) for row in rows)
    return found


def _demonstration(table: Table, variants: Mapping[str, Variant], *, synthetic: bool) -> Demonstration:
    answers: dict[str, str] = {}
    steps = [step for variant in variants.values() if variant.demonstrations for step in variant.steps]
    for step in steps:
        answer = " ".join(table.text(step.name).split())
        if step.labels and answer not in step.labels:
            raise PromptError(table.at(step.name), f"must be one of {shortened(', '.join(step.labels))}")
        answers[step.name] = answer
    demonstration = Demonstration(
        question=table.text("question"),
        references=(table.text("answer"),) if synthetic else table.texts("references"),
        prediction="" if synthetic else table.text("prediction"),
        caption="" if synthetic else table.text("caption", ""),
        answers=answers,
    )
    table.finish()
    return demonstration
