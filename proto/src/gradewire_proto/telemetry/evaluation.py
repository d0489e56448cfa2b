"""The event `gen_ai.evaluation.result`: what there is to say of one result, and how it is emitted."""

from dataclasses import dataclass
from typing import Final

from opentelemetry._logs import Logger, SeverityNumber
from opentelemetry.context import Context

from gradewire_proto.spans import (
    ERROR_TYPE,
    EVALUATION_EVENT,
    EVALUATION_NAME,
    EXPLANATION,
    ITEM_INDEX,
    METRIC_LINE,
    SCORE_LABEL,
    SCORE_VALUE,
)

_MAX_CHARACTERS: Final = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """One result of one metric.

    Attributes:
        name: Of the metric.
        score: None where there is none.
        error_type: Why there is none, a status in capitals; empty exactly where there is a score.
        label: "correct", "incorrect", or the winner of a pair; empty where the metric gives no verdict.
        explanation: May be empty.
        item_index: Position of the item in its call; None where it is not known.
        line: By which the score can be had again; empty where it is not known.
    """

    name: str
    score: float | None
    error_type: str = ""
    label: str = ""
    explanation: str = ""
    item_index: int | None = None
    line: str = ""

    def attributes(self) -> dict[str, str | float | int]:
        """As OpenTelemetry names them; a result without a score never has a value or a label."""
        found: dict[str, str | float | int] = {EVALUATION_NAME: self.name}
        if self.score is None or self.error_type:
            found[ERROR_TYPE] = self.error_type or "UNKNOWN"
        else:
            found[SCORE_VALUE] = self.score
            if self.label:
                found[SCORE_LABEL] = self.label
        if self.explanation:
            found[EXPLANATION] = self.explanation[:_MAX_CHARACTERS]
        if self.item_index is not None:
            found[ITEM_INDEX] = self.item_index
        if self.line:
            found[METRIC_LINE] = self.line
        return found


def emit(logger: Logger, evaluation: Evaluation, evaluated: Context) -> None:
    """Emits the event of a result.

    Args:
        logger: Of a logger provider.
        evaluation: The result.
        evaluated: Context whose span is the evaluated one; the event is parented to it.
    """
    logger.emit(
        context=evaluated,
        severity_number=SeverityNumber.INFO,
        event_name=EVALUATION_EVENT,
        attributes=evaluation.attributes(),
    )


def explanation_of(warnings: list[str], matched_reference: int | None, text: str) -> str:
    """What may be said of a result: nothing of a user's, unless `text` is given."""
    said = [] if matched_reference is None else [f"reference {matched_reference} gave the score"]
    return "; ".join([*said, *warnings, *([text] if text else [])])
