from typing import Any

import pandas as pd
import pytest
from phoenix.evals import async_evaluate_dataframe, evaluate_dataframe
from tests_frameworks.evaluation.rows import COMPLETION, ITEMS

from gradewire.integrations.evaluation.phoenix import GradewireEvaluator

FRAME = pd.DataFrame(
    [{"input": item.question, "output": item.prediction, "expected": list(item.references)} for item in ITEMS]
)


def scores(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return list(frame["gradewire_score"])


def test_a_frame_gets_the_servers_scores_and_none_for_an_empty_output(expected: list[Any]) -> None:
    right, wrong, empty = scores(evaluate_dataframe(FRAME, [GradewireEvaluator()], hide_tqdm_bar=True))

    assert [right["score"], wrong["score"]] == pytest.approx(expected[:2], abs=2e-4)
    assert [right["label"], wrong["label"]] == ["right", "uncertain"]
    assert (empty.get("score"), empty.get("label")) == (None, None)
    assert empty["metadata"]["status"] == "EMPTY_PREDICTION"
    assert right["explanation"].startswith("correctness gives")


async def test_the_asynchronous_runner_says_the_same(expected: list[Any]) -> None:
    shown = scores(await async_evaluate_dataframe(FRAME, [GradewireEvaluator()], hide_tqdm_bar=True))

    assert [told["score"] for told in shown[:2]] == pytest.approx(expected[:2], abs=2e-4)


def test_a_mapping_names_other_columns() -> None:
    row = {"prediction": "a cat", "gold": "cat"}

    (score,) = GradewireEvaluator("exact_match").evaluate(row, {"output": "prediction", "expected": "gold"})

    assert (score.score, score.label, score.kind) == (1.0, "right", "code")


def test_without_a_server_no_row_has_a_score(nobody: str) -> None:
    evaluator = GradewireEvaluator(address=nobody, deadline_s=0.3)

    for told in scores(evaluate_dataframe(FRAME, [evaluator], hide_tqdm_bar=True)):
        assert told.get("score") is None
        assert told["metadata"]["error_type"] == "ServerUnreachable"


@pytest.mark.parametrize(("extraction", "score"), [(None, 0.0), ("auto", 1.0)])
def test_the_final_answer_of_a_completion_is_graded_if_asked_for(extraction: Any, score: float) -> None:
    evaluator = GradewireEvaluator("exact_match", extraction=extraction)

    (told,) = evaluator.evaluate({"output": COMPLETION, "expected": ["a cat"]})
    assert told.score == score
