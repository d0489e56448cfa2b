from collections.abc import Iterator
from typing import Any

import pytest
from langfuse import Langfuse
from tests_frameworks.evaluation.rows import ANSWERS, ITEMS

from gradewire.integrations.evaluation.langfuse import gradewire_evaluator

DATA = [{"input": item.question, "expected_output": list(item.references)} for item in ITEMS]


@pytest.fixture
def client() -> Iterator[Langfuse]:
    """It runs experiments, and sends nothing."""
    client = Langfuse(tracing_enabled=False)
    yield client
    client.shutdown()


def run(client: Langfuse, evaluator: Any, data: list[dict[str, Any]]) -> list[dict[str, Any]]:
    result = client.run_experiment(
        name="pets", data=data, task=lambda *, item, **_: ANSWERS[item["input"]], evaluators=[evaluator]
    )
    shown = {item.item["input"]: {score.name: score for score in item.evaluations} for item in result.item_results}
    return [shown[row["input"]] for row in data]


def test_an_experiment_has_the_servers_scores_and_no_number_for_an_empty_output(
    client: Langfuse, expected: list[Any]
) -> None:
    right, wrong, empty = run(client, gradewire_evaluator(), DATA)

    assert [right["gradewire"].value, wrong["gradewire"].value] == pytest.approx(expected[:2], abs=2e-4)
    labels = [scores["gradewire_label"].value for scores in (right, wrong, empty)]
    assert labels == ["right", "uncertain", "EMPTY_PREDICTION"]
    assert set(empty) == {"gradewire_label"}
    assert right["gradewire"].comment.startswith("calibrated gives")
    assert len(right["gradewire"].metadata["digest"]) == 64


async def test_the_question_may_stand_among_other_inputs_and_one_answer_may_be_a_text() -> None:
    evaluator = gradewire_evaluator("exact_match", name="match")

    number, label = await evaluator(input={"question": "What?"}, output="a cat", expected_output="cat", metadata=None)

    assert (number.name, number.value, label.name, label.value) == ("match", 1.0, "match_label", "right")


def test_without_a_server_no_item_has_a_number(client: Langfuse, nobody: str) -> None:
    for scores in run(client, gradewire_evaluator(address=nobody, deadline_s=0.3), DATA):
        assert set(scores) == {"gradewire_label"}
        assert scores["gradewire_label"].value == "UNAVAILABLE"


def test_an_item_without_an_expected_output_has_no_score_at_all(client: Langfuse) -> None:
    assert run(client, gradewire_evaluator(), [{"input": ITEMS[0].question}]) == [{}]
