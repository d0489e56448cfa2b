from typing import Any

import pytest
from deepeval import evaluate
from deepeval.errors import MissingTestCaseParamsError
from deepeval.evaluate import AsyncConfig, CacheConfig, DisplayConfig, ErrorConfig
from deepeval.test_case import LLMTestCase
from deepeval.test_run import MetricData
from tests_frameworks.evaluation.rows import COMPLETION, ITEMS

from gradewire.integrations.evaluation.deepeval import GradewireMetric

CASES = [
    LLMTestCase(
        name=str(at),
        input=item.question,
        actual_output=item.prediction,
        expected_output=item.references[0],
        metadata={"references": item.references},
    )
    for at, item in enumerate(ITEMS)
]


def run(metric: GradewireMetric, cases: list[LLMTestCase], *, run_async: bool = True, **errors: bool) -> list[Any]:
    result = evaluate(
        cases,
        [metric],
        async_config=AsyncConfig(run_async=run_async),
        display_config=DisplayConfig(show_indicator=False, print_results=False, inspect_after_run=False),
        cache_config=CacheConfig(write_cache=False),
        error_config=ErrorConfig(**errors),
    )
    return sorted(result.test_results, key=lambda test: test.name)


def data(metric: GradewireMetric, **settings: bool) -> list[MetricData]:
    return [test.metrics_data[0] for test in run(metric, CASES, **settings)]


@pytest.mark.parametrize("run_async", [True, False])
def test_evaluate_shows_the_servers_scores_and_an_empty_output_as_an_error(
    expected: list[Any],
    run_async: bool,  # noqa: FBT001 - as DeepEval has it
) -> None:
    right, wrong, empty = data(GradewireMetric(), run_async=run_async)

    assert [right.score, wrong.score] == pytest.approx(expected[:2], abs=2e-4)
    assert [right.success, wrong.success, empty.success] == [True, False, False]
    assert right.reason.startswith("correctness gives")
    assert (empty.score, right.error) == (None, None)
    assert "EMPTY_PREDICTION" in empty.error


def test_a_case_passes_from_the_threshold_on_and_never_without_a_score() -> None:
    right, wrong, empty = data(GradewireMetric("smile", threshold=0.0))

    assert [right.success, wrong.success, empty.success] == [True, True, False]


def test_without_a_server_the_run_ends_and_nothing_has_a_score(nobody: str) -> None:
    for told in data(GradewireMetric(address=nobody, deadline_s=0.3)):
        assert (told.score, told.success) == (None, False)
        assert "UNAVAILABLE" in told.error


def test_a_case_without_references_is_what_deepeval_calls_missing() -> None:
    case = LLMTestCase(name="0", input="What?", actual_output="cat")

    with pytest.raises(MissingTestCaseParamsError, match="expected_output"):
        GradewireMetric().measure(case)
    (skipped,) = run(GradewireMetric(), [case], skip_on_missing_params=True)
    assert not skipped.metrics_data


def test_all_references_count_and_the_breakdown_tells_which_line_gave_the_score() -> None:
    metric = GradewireMetric("exact_match")
    case = LLMTestCase(input="?", actual_output="a cat", expected_output="dog", metadata={"references": ["dog", "cat"]})

    assert metric.measure(case) == 1.0
    assert metric.is_successful()
    assert metric.score_breakdown["metric_line"].startswith("exact_match/")
    assert metric.score_breakdown["matched_reference"] == 1


@pytest.mark.parametrize(("extraction", "score"), [(None, 0.0), ("auto", 1.0)])
def test_the_final_answer_of_a_completion_is_graded_if_asked_for(extraction: Any, score: float) -> None:
    case = LLMTestCase(name="0", input="What sleeps?", actual_output=COMPLETION, expected_output="a cat")
    (told,) = run(GradewireMetric("exact_match", extraction=extraction), [case])

    assert told.metrics_data[0].score == score
