from math import isnan
from typing import Any

import pytest
from ragas import Dataset, experiment
from ragas.backends.inmemory import InMemoryBackend
from tests_frameworks.evaluation.rows import ITEMS

from gradewire.integrations.evaluation.ragas import GradewireMetric

ROWS = [
    {"user_input": item.question, "response": item.prediction, "reference": list(item.references)} for item in ITEMS
]


async def test_an_experiment_shows_the_servers_scores_and_nan_for_an_empty_response(expected: list[Any]) -> None:
    metric = GradewireMetric()

    @experiment()
    async def grade(row: dict[str, Any]) -> dict[str, Any]:
        result = await metric.ascore(**row)
        return {"user_input": row["user_input"], "score": result.value, "reason": result.reason}

    dataset = Dataset("pets", backend=InMemoryBackend(), data=ROWS)
    shown = {row["user_input"]: row for row in await grade.arun(dataset, name="first")}
    right, wrong, empty = (shown[item.question] for item in ITEMS)

    assert [right["score"], wrong["score"]] == pytest.approx(expected[:2], abs=2e-4)
    assert isnan(empty["score"])
    assert "EMPTY_PREDICTION" in empty["reason"]


def test_a_batch_says_the_same_and_tells_line_and_digest(expected: list[Any]) -> None:
    right, wrong, empty = GradewireMetric().batch_score(ROWS)

    assert [right.value, wrong.value] == pytest.approx(expected[:2], abs=2e-4)
    assert isnan(empty.value)
    assert empty.traces["output"]["status"] == "EMPTY_PREDICTION"
    assert right.traces["output"]["label"] == "right"
    assert len(right.traces["output"]["digest"]) == 64


async def test_one_at_a_time_and_many_beside_each_other_are_equal() -> None:
    metric = GradewireMetric("smile:fast")
    one = metric.score(**ROWS[0])

    (first, *_) = await metric.abatch_score(ROWS)
    assert first.value == pytest.approx(one.value, abs=2e-4)


def test_without_a_server_nothing_has_a_score(nobody: str) -> None:
    for result in GradewireMetric(address=nobody, deadline_s=0.3).batch_score(ROWS):
        assert isnan(result.value)
        assert result.traces["output"]["error_type"] == "ServerUnreachable"
