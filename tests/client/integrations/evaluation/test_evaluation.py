import json

import pytest

from gradewire import (
    CorrectnessParts,
    DeadlineExceeded,
    JudgeParts,
    MetricScore,
    Overloaded,
    Provenance,
    ScoreWarning,
    ServerUnreachable,
    Status,
)
from gradewire.integrations.evaluation import Evaluation

LINE = "correctness/2?model=m"
PROVENANCE = Provenance(name="correctness", version=2, model="m", model_digest="a" * 64, line=LINE)


def scored(score: float, *, correct: bool | None, **fields: object) -> Evaluation:
    result = MetricScore(score=score, status=Status.OK, correct=correct, provenance=PROVENANCE, **fields)  # type: ignore[arg-type]
    return Evaluation.of_score("correctness", result)


@pytest.mark.parametrize(
    ("correct", "warnings", "label"),
    [
        (True, (), "right"),
        (False, (), "wrong"),
        (True, (ScoreWarning.UNCERTAIN,), "uncertain"),
        (False, (ScoreWarning.UNCERTAIN, ScoreWarning.TRUNCATED), "uncertain"),
        (True, (ScoreWarning.TRUNCATED,), "right"),
        (None, (), "none"),
    ],
)
def test_the_label_is_the_verdict_as_far_as_it_is_to_be_trusted(
    correct: bool | None,  # noqa: FBT001 - a column of the table
    warnings: tuple[ScoreWarning, ...],
    label: str,
) -> None:
    evaluation = scored(0.5, correct=correct, warnings=warnings)

    assert (evaluation.label, evaluation.correct, evaluation.value) == (label, correct, 0.5)


def test_a_score_comes_with_line_digest_and_parts_that_json_takes() -> None:
    parts = CorrectnessParts(0.9, 0.8, 0.7, 1.0, "small cat", {"length": 2.0}, uncertain=False, fit="f" * 12)
    evaluation = scored(0.934567, correct=True, parts=parts, matched_reference=1)

    told = json.loads(json.dumps(evaluation.to_dict()))
    assert (told["metric_line"], told["digest"], told["status"]) == (LINE, "a" * 64, "OK")
    assert (told["best_window"], told["features"], told["model"]) == ("small cat", {"length": 2.0}, "m")
    assert told["correct"] is True
    assert "error_type" not in told
    assert evaluation.explanation == 'correctness gives 0.9346, right; by reference 2; closest words "small cat".'


def test_a_judges_reason_is_in_the_sentence_and_is_cut() -> None:
    short = scored(1.0, correct=True, parts=JudgeParts(reason="Both name the cat."))
    long = scored(1.0, correct=True, parts=JudgeParts(reason="cat " * 1000))

    assert short.explanation == "correctness gives 1, right; reason: Both name the cat."
    assert len(long.explanation) < 300
    assert long.to_dict()["reason"] == "cat " * 1000


@pytest.mark.parametrize("status", sorted(set(Status) - {Status.OK}))
def test_without_a_score_there_is_no_value_whatever_the_status(status: Status) -> None:
    evaluation = Evaluation.of_score("smile", MetricScore(None, status, message="say why", correct=None))

    assert (evaluation.value, evaluation.scored, evaluation.label, evaluation.correct) == (None, False, "none", None)
    assert (evaluation.status, evaluation.error_type) == (status, status.value)
    assert evaluation.explanation == f"Not scored ({status}): say why"


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (ServerUnreachable("nobody"), Status.UNAVAILABLE),
        (Overloaded("full"), Status.UNAVAILABLE),
        (DeadlineExceeded("late"), Status.TIMEOUT),
    ],
)
def test_a_call_without_an_answer_names_its_error(
    error: ServerUnreachable | Overloaded | DeadlineExceeded, status: Status
) -> None:
    evaluation = Evaluation.of_error("smile", error)

    assert (evaluation.value, evaluation.status, evaluation.error_type) == (None, status, type(error).__name__)
    assert str(error) in evaluation.explanation
