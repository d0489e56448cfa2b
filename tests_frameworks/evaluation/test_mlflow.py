from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mlflow
import pytest
from mlflow.entities import Feedback
from tests_frameworks.evaluation.rows import ANSWERS, COMPLETION, ITEMS

from gradewire.integrations.evaluation.mlflow import GradewireScorer

ROWS = [
    {"inputs": {"question": item.question}, "expectations": {"references": list(item.references)}} for item in ITEMS
]


@pytest.fixture(autouse=True)
def tracking(tmp_path: Path) -> Iterator[None]:
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path / 'mlflow.db'}")
    mlflow.create_experiment("pets", artifact_location=(tmp_path / "artifacts").as_uri())
    mlflow.set_experiment("pets")
    yield
    mlflow.set_tracking_uri(before)


def run(scorer: GradewireScorer) -> tuple[dict[str, float], dict[str, Feedback]]:
    result = mlflow.genai.evaluate(data=ROWS, predict_fn=lambda question: ANSWERS[question], scorers=[scorer])
    shown = {}
    for trace in mlflow.search_traces(run_id=result.run_id, return_type="list"):
        (feedback,) = trace.search_assessments(name=scorer.name, type="feedback")
        shown[trace.search_spans()[0].inputs["question"]] = feedback
    return result.metrics, shown


def test_evaluate_keeps_the_servers_scores_and_an_error_for_an_empty_output(expected: list[Any]) -> None:
    metrics, shown = run(GradewireScorer())
    right, wrong, empty = (shown[item.question] for item in ITEMS)

    assert [right.value, wrong.value] == pytest.approx(expected[:2], abs=2e-4)
    assert metrics["gradewire/mean"] == pytest.approx(sum(expected[:2]) / 2, abs=2e-4)
    assert (empty.value, empty.error.error_code) == (None, "EMPTY_PREDICTION")
    assert right.rationale.startswith("correctness gives")
    assert right.metadata["label"] == "right"
    assert len(right.metadata["digest"]) == 64


def test_without_a_server_no_row_has_a_value(nobody: str) -> None:
    metrics, shown = run(GradewireScorer(name="dead", address=nobody, deadline_s=0.3))

    assert "dead/mean" not in metrics
    assert {feedback.error.error_code for feedback in shown.values()} == {"ServerUnreachable"}
    assert {feedback.value for feedback in shown.values()} == {None}


def test_called_alone_it_takes_one_reference_and_names_what_it_lacks() -> None:
    scorer = GradewireScorer(metric="exact_match")

    assert scorer(outputs="cat", expectations={"expected_response": "cat"}).value == 1.0
    with pytest.raises(ValueError, match="expectations has no references: give one of references, expected_response"):
        scorer(outputs="cat", expectations={"golds": "cat"})


@pytest.mark.parametrize(("extraction", "score"), [(None, 0.0), ("auto", 1.0)])
def test_the_final_answer_of_a_completion_is_graded_if_asked_for(extraction: Any, score: float) -> None:
    scorer = GradewireScorer(metric="exact_match", extraction=extraction)

    assert scorer(outputs=COMPLETION, expectations={"references": ["a cat"]}).value == score
