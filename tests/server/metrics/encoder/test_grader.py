import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradewire_proto.parts import GraderParts
from gradewire_server.domain.items import Failure, Item, MetricResult, ReferenceEntry, Status
from gradewire_server.domain.items import ResultWarning as Remark
from gradewire_server.domain.metric import NO_MODEL, ModelMetadata
from gradewire_server.domain.needs import Grade, Grades
from gradewire_server.metrics.encoder.grader import MAX_CHARACTERS, Grader, GraderParameters

ITEM = Item(id="", question="who?", references=("a man", "someone"), prediction="the man")
PARAMETERS = GraderParameters(model="mini@1")


def grades(*logits: float, truncated: bool = False, pieces: int = 1) -> Grades:
    count = len(logits)
    return Grades(
        np.array(logits, np.float32), np.array([truncated] * count, np.bool_), np.array([pieces] * count, np.int32)
    )


def run(item: Item, answer: Any, metadata: ModelMetadata = NO_MODEL) -> tuple[MetricResult, list[Grade]]:
    """The result, and what was asked in its single round."""
    program = Grader().score(item, PARAMETERS, metadata)
    asked: list[Grade] = []
    try:
        needs = next(program)
        asked += [need for need in needs if isinstance(need, Grade)]
        program.send((answer,))
    except StopIteration as stop:
        return stop.value, asked
    raise AssertionError("there is one round")


def test_the_best_reference_gives_the_score() -> None:
    result, (asked,) = run(ITEM, grades(-1.0, 0.5, pieces=3))
    assert asked == Grade("mini@1", (("who?", "a man", "the man"), ("who?", "someone", "the man")))
    assert result.score == pytest.approx(1 / (1 + math.exp(-0.5)), abs=1e-12)
    assert (result.matched_reference, result.correct, result.warnings) == (1, True, ())
    assert result.parts == GraderParts(logit=0.5, pieces=3, truncated=False)


def test_equal_logits_name_the_first_reference() -> None:
    result, _ = run(ITEM, grades(-2.0, -2.0))
    assert (result.matched_reference, result.correct) == (0, False)


@given(st.floats(-300, 300, width=32), st.floats(0.05, 20))
def test_the_temperature_divides_the_logit(logit: float, temperature: float) -> None:
    result, _ = run(replace(ITEM, references=("a",)), grades(logit), ModelMetadata(temperature=temperature))
    # By another formula than the metric's.
    assert result.score == pytest.approx((1 + math.tanh(logit / temperature / 2)) / 2, abs=1e-12)
    assert result.correct == (result.score >= 0.5)  # type: ignore[operator]
    assert isinstance(result.parts, GraderParts)
    assert result.parts.logit == logit


@pytest.mark.parametrize("question", ["", "  ", "\u200b"])
def test_a_blank_question_is_an_empty_one(question: str) -> None:
    result, (asked,) = run(replace(ITEM, question=question), grades(1.0, 0.0))
    assert result.status is Status.OK
    assert {texts[0] for texts in asked.items} == {""}


@pytest.mark.parametrize(
    ("changes", "status", "message"),
    [
        ({"references": ()}, Status.INVALID_INPUT, "references: give at least one right answer"),
        ({"references": ("a", " ")}, Status.INVALID_INPUT, "references[1]: is blank"),
        ({"prediction": "\u200b"}, Status.EMPTY_PREDICTION, "prediction: is blank"),
    ],
)
def test_bad_input_names_its_field_and_asks_nothing(changes: dict[str, Any], status: Status, message: str) -> None:
    result, asked = run(replace(ITEM, **changes), None)
    assert (result.status, result.score, asked) == (status, None, [])
    assert result.message.startswith(message)


def test_a_failure_of_the_grader_is_passed_on() -> None:
    result, _ = run(ITEM, Failure(Status.UNAVAILABLE, "busy", retry_after_s=2))
    assert (result.status, result.message, result.retry_after_s) == (Status.UNAVAILABLE, "busy", 2)


def test_what_was_not_read_is_told() -> None:
    result, _ = run(ITEM, grades(1.0, 2.0, truncated=True))
    assert result.warnings == (Remark.TRUNCATED,)
    assert result.parts == GraderParts(logit=2.0, pieces=1, truncated=True)
    long, (asked,) = run(replace(ITEM, prediction="x " * MAX_CHARACTERS), grades(1.0, 2.0))
    assert long.warnings == (Remark.TRUNCATED,)
    assert max(len(text) for texts in asked.items for text in texts) == MAX_CHARACTERS


def test_preparing_checks_the_references_alone() -> None:
    def prepared(references: tuple[str, ...]) -> Failure | None:
        program = Grader().prepare(ReferenceEntry("who?", references), PARAMETERS)
        with pytest.raises(StopIteration) as stop:
            next(program)
        found: Failure | None = stop.value.value
        return found

    assert prepared(("a man",)) is None
    failure = prepared(("a", ""))
    assert failure is not None
    assert failure.message.startswith("references[1]")
