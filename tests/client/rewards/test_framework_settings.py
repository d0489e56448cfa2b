"""The column of right answers in data sets of reinforcement learning."""

import pytest

from gradewire import InvalidRequest
from gradewire.rewards.framework_settings import reference_name


@pytest.mark.parametrize(
    ("columns", "found"),
    [
        ("question answer", "answer"),
        ("problem solution", "solution"),
        ("prompt ground_truth answer", "ground_truth"),
        ("input expected_output label", "expected_output"),
        ("references answer solution", "references"),
        ("Question Answer", "Answer"),
        ("prompt Gold-Answer Answer", "Gold-Answer"),
    ],
)
def test_a_usual_name_is_found(columns: str, found: str) -> None:
    assert reference_name(dict.fromkeys(columns.split()), "") == found


@pytest.mark.parametrize("columns", ["problem solution answer", "answer label", "reference ground_truth answer"])
def test_several_names_are_refused_until_one_is_chosen(columns: str) -> None:
    given = dict.fromkeys(columns.split())
    with pytest.raises(
        InvalidRequest, match=r"could both hold the right answers: name one \(TrlReward\(references=…\)"
    ):
        reference_name(given, "")
    for name in given:
        assert reference_name(given, name) == name


def test_a_missing_name_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(InvalidRequest, match=r"no column gold; the columns are: answer, prompt\. Name the column"):
        reference_name({"prompt": 1, "answer": 2}, "gold")
