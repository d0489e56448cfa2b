from pathlib import Path
from typing import Any

import evaluate
import pytest
from tests_frameworks.evaluation.rows import COMPLETION, ITEMS

from gradewire.integrations.evaluation.hugging_face import GradewireMetric

PREDICTIONS = [item.prediction for item in ITEMS]
REFERENCES = [list(item.references) for item in ITEMS]
QUESTIONS = [item.question for item in ITEMS]


@pytest.fixture
def cache(tmp_path: Path) -> str:
    return str(tmp_path / "cache")


def test_compute_gives_the_servers_scores_and_counts_what_has_none(expected: list[Any], cache: str) -> None:
    metric = GradewireMetric(cache_dir=cache)

    result = metric.compute(predictions=PREDICTIONS, references=REFERENCES, questions=QUESTIONS)

    assert result["scores"][:2] == pytest.approx(expected[:2], abs=2e-4)
    assert result["scores"][2] is None
    assert result["gradewire"] == pytest.approx(sum(expected[:2]) / 2, abs=2e-4)
    assert (result["gradewire_scored"], result["gradewire_unscored"], result["gradewire_share_right"]) == (2, 1, 0.5)
    assert result["statuses"] == ["OK", "OK", "EMPTY_PREDICTION"]
    assert result["metric_line"].startswith("correctness")


def test_batches_are_gathered_and_one_reference_may_be_a_text(cache: str) -> None:
    metric = GradewireMetric("exact_match", cache_dir=cache)
    metric.add_batch(predictions=["cat", "dog"], references=["cat", "cat"])
    metric.add(prediction="a cat", reference="cat")

    result = metric.compute()

    assert result["scores"] == [1.0, 0.0, 1.0]
    assert result["gradewire"] == pytest.approx(2 / 3)


def test_it_stands_among_other_metrics_in_a_combination(cache: str) -> None:
    both = evaluate.combine([GradewireMetric("exact_match", cache_dir=cache)])

    assert both.compute(predictions=["cat"], references=["cat"])["gradewire"] == 1.0


def test_without_a_server_the_mean_is_none(nobody: str, cache: str) -> None:
    metric = GradewireMetric(address=nobody, deadline_s=0.3, cache_dir=cache)

    result = metric.compute(predictions=PREDICTIONS, references=REFERENCES)

    assert (result["gradewire"], result["gradewire_unscored"]) == (None, len(ITEMS))


@pytest.mark.parametrize(("extraction", "score"), [(None, 0.0), ("auto", 1.0)])
def test_the_final_answer_of_a_completion_is_graded_if_asked_for(extraction: Any, score: float, cache: str) -> None:
    metric = GradewireMetric("exact_match", extraction=extraction, cache_dir=cache)

    assert metric.compute(predictions=[COMPLETION], references=["a cat"])["gradewire"] == score
