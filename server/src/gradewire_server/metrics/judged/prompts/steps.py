"""Reads the steps of a prompt file's variant: the lines of the judge's turn."""

from typing import Final

from gradewire_server.domain.quoting import quoted, shortened
from gradewire_server.metrics.judged.neutralise import without_markup
from gradewire_server.metrics.judged.prompts.file import Step
from gradewire_server.metrics.judged.prompts.shapes import STEPS, StepShape, VariantShape
from gradewire_server.metrics.judged.prompts.table import PromptError, Table

_MAX_TOKENS: Final = 1024
_MAX_LABELS: Final = 16
_MAX_LABEL_CHARACTERS: Final = 64
"""Every result names the labels."""
_UNFIT: Final = "has a chat token, a control character or something that is not seen, or more than one space on end"


def read_steps(table: Table, shape: VariantShape) -> tuple[Step, ...]:
    """Reads a variant's steps; raises PromptError unless they are one of the shape's sequences."""
    steps = tuple(_step(row, first=index == 0) for index, row in enumerate(table.tables("steps")))
    names = tuple(step.name for step in steps)
    if names not in shape.sequences:
        allowed = "; or ".join(", ".join(sequence) for sequence in shape.sequences)
        raise PromptError(table.at("steps"), f"must be {allowed}, not {shortened(', '.join(names))}")
    return steps


def _step(table: Table, *, first: bool) -> Step:
    name = table.text("name")
    shape = STEPS.get(name)
    if shape is None:
        raise PromptError(table.at("name"), f"{quoted(name)} is not known; steps are {', '.join(STEPS)}")
    opening = table.text("opening", "")
    if opening != opening.strip() or "\n" in opening:
        raise PromptError(table.at("opening"), "is one line, without white space at its ends")
    if without_markup(opening) != opening:
        raise PromptError(table.at("opening"), _UNFIT)
    if not opening and not first:
        raise PromptError(table.at("opening"), "is missing; only the first step may do without one")
    step = _text_step(table, name, opening) if shape.generated else _label_step(table, shape, name, opening)
    table.finish()
    return step


def _text_step(table: Table, name: str, opening: str) -> Step:
    return Step(name, opening, max_tokens=table.integer("max_tokens", 1, _MAX_TOKENS))


def _label_step(table: Table, shape: StepShape, name: str, opening: str) -> Step:
    labels = table.table("labels")
    if labels is None:
        raise PromptError(table.at("labels"), "is missing")
    names = labels.keys()
    if not 2 <= len(names) <= _MAX_LABELS:
        raise PromptError(table.at("labels"), f"must be 2 to {_MAX_LABELS} labels")
    for label in names:
        if not label or label != " ".join(label.split()):
            raise PromptError(labels.at(label), "is no label: words with single spaces between them")
        if len(label) > _MAX_LABEL_CHARACTERS:
            raise PromptError(labels.at(label), f"is no label: a label has at most {_MAX_LABEL_CHARACTERS} characters")
        if without_markup(label) != label:
            raise PromptError(labels.at(label), _UNFIT)
        if any(other != label and other.startswith(label) for other in names):
            raise PromptError(labels.at(label), "begins another label; the judge could not be told which it means")
    values = tuple(_value(labels, shape, label) for label in names)
    if len(set(values)) == 1:
        raise PromptError(table.at("labels"), "all stand for the same value: every answer would score alike")
    if not shape.values_used <= set(values):
        raise PromptError(table.at("labels"), f"must have a label for each value: {shape.told}")
    return Step(name, opening, names, values)


def _value(labels: Table, shape: StepShape, label: str) -> float:
    value = labels.number(label, *shape.values)
    if shape.values_used and value not in shape.values_used:
        raise PromptError(labels.at(label), f"must be {shape.told}")
    return value
