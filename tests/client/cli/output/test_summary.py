"""Verdicts and the share right of a summary."""

import pytest

from gradewire.cli.output.summary import MetricTally, verdict


@pytest.mark.parametrize(
    ("label", "result", "expected"),
    [
        ("bertscore", {"score": 0.9, "correct": True}, True),
        ("bertscore", {"score": 0.9, "correct": False}, False),
        ("bertscore", {"score": 1.0}, None),
        ("exact_match", {"score": 0.0, "correct": True}, True),
        ("exact_match", {"score": 0.0}, False),
        ("mine", {"score": 1.0, "line": "easy_match/1"}, True),
        ("exact_match", {"score": None, "status": "TIMEOUT"}, None),
    ],
)
def test_a_verdict_is_what_the_result_says(label: str, result: dict[str, object], expected: bool | None) -> None:  # noqa: FBT001 - a table of cases
    assert verdict(label, result) is expected


def test_the_share_right_leaves_out_failures_and_results_without_a_verdict() -> None:
    tally = MetricTally()
    for index in range(100):
        failed = {"score": None, "status": "TIMEOUT"}
        scored = {"score": 0.5, "status": "OK"} | ({"correct": index % 4 == 0} if index % 2 == 0 else {})
        tally.add("bertscore", failed if index % 10 < 3 else scored, identifier=str(index))
    kept = [index for index in range(100) if index % 10 >= 3]
    judged = [index % 4 == 0 for index in kept if index % 2 == 0]
    assert (tally.share_right, tally.mean) == (sum(judged) / len(judged), 0.5)
    assert tally.failures == {"TIMEOUT": 30}
