"""A result of the server as an evaluation; without the texts of users, unless the environment lets them through."""

import json
from dataclasses import asdict

from gradewire_proto.telemetry.evaluation import Evaluation, explanation_of
from gradewire_proto.telemetry.recorded import Result
from gradewire_proto.telemetry.settings import captures_content
from gradewire_server.domain.items import MetricResult, Status


def evaluation_of(told: Result) -> Evaluation:
    """What an event says of a result."""
    result: MetricResult = told.result
    text = _text_of(result) if captures_content() else ""
    return Evaluation(
        name=told.metric,
        score=result.score,
        error_type="" if result.status is Status.OK else result.status.name,
        label=_label_of(result),
        explanation=explanation_of([each.name for each in result.warnings], result.matched_reference, text),
        item_index=told.item_index,
    )


def _label_of(result: MetricResult) -> str:
    if result.compared is not None and result.compared.winner is not None:
        return result.compared.winner.name.lower()
    return "" if result.correct is None else "correct" if result.correct else "incorrect"


def _text_of(result: MetricResult) -> str:
    """Messages quote texts, and parts hold windows of them."""
    parts = "" if result.parts is None else json.dumps(asdict(result.parts), ensure_ascii=False, default=str)
    return "; ".join(filter(None, (result.message, parts)))
