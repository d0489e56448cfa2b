"""Results of the server as evaluations: their verdicts, their failures, and no text unless it is let through."""

from typing import Any

import pytest

from gradewire_proto.parts import SmileParts
from gradewire_server.domain.items import Compared, Failure, MetricResult, ResultWarning, Status, Winner
from gradewire_server.tracing import evaluation_of

PARTS = SmileParts(
    sentence=0.5, keyword=0.5, exact=0.0, lexical=0.5, best_window="a user's words", bin=2, correct=False
)
CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"


@pytest.mark.parametrize(("correct", "label"), [(True, "correct"), (False, "incorrect"), (None, "")])
def test_the_label_is_the_verdict(correct: Any, label: str) -> None:
    assert evaluation_of("smile", 1, MetricResult(0.5, correct=correct)).label == label


def test_of_a_pair_the_label_is_the_winner() -> None:
    result = MetricResult(1.0, compared=Compared(Winner.A, decided_by="judge"))
    assert evaluation_of("compare", 0, result).label == "a"


@pytest.mark.parametrize("status", [status for status in Status if status is not Status.OK])
def test_a_failure_has_its_status_and_no_score(status: Status) -> None:
    failed = MetricResult.failed(Failure(status, "a user's words"))
    said = evaluation_of("smile", 0, failed).attributes()

    assert said == {"gen_ai.evaluation.name": "smile", "error.type": status.name, "gradewire.item.index": 0}


def test_texts_stand_in_the_explanation_where_the_environment_lets_them(monkeypatch: pytest.MonkeyPatch) -> None:
    result = MetricResult(0.5, parts=PARTS, warnings=(ResultWarning.TRUNCATED,), matched_reference=0)

    assert evaluation_of("smile", 0, result).explanation == "reference 0 gave the score; TRUNCATED"
    monkeypatch.setenv(CONTENT, "true")
    assert '"best_window": "a user\'s words"' in evaluation_of("smile", 0, result).explanation
