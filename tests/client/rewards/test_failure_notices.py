"""Rewards that all fail for one reason cause a warning that names the columns, and few of them."""

from pathlib import Path

import pytest
from tests.client.small_server import SmallServer

from gradewire.api import embedded_transport
from gradewire.rewards import FailureHandling, RewardSample, RewardScorer
from gradewire.rewards.trl import TrlReward

TOLERANT = FailureHandling(max_failure_rate=1)


def warned(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "gradewire.rewards"]


def test_null_references_of_a_whole_batch_name_the_columns(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    engine = embedded_transport(model_repository=tmp_path, disk_directory=tmp_path / "store", judge_backend="none")
    with RewardScorer(engine, "exact_match", failures=TOLERANT) as scorer:
        function = TrlReward(scorer)
        batch = {"prompts": ["What?"] * 8, "completions": ["a cat"] * 8, "answer": [None] * 8, "other": ["a cat"] * 8}
        for _ in range(25):
            assert function(**batch) == [None] * 8
    first, tenth = warned(caplog)
    assert first.startswith("all 8 completions failed for the reward: INVALID_INPUT: ")
    assert "The first sample lacks references. Its row has the columns answer, other. " in first
    assert "read references from one of references, reference, golden_answer" in first
    assert "(for the 10th time; the next warning comes at 100)" in tenth


def test_completions_without_an_answer_warn_too_one_by_one(
    small_server: SmallServer, caplog: pytest.LogCaptureFixture
) -> None:
    with RewardScorer(small_server.address, "exact_match", extraction="boxed") as scorer:
        for _ in range(8):
            scorer.score_one(RewardSample("a cat", ["a cat"]))
    (message,) = warned(caplog)
    assert message.startswith("all 8 completions failed for the reward: EMPTY_PREDICTION: ")
    assert "sample lacks" not in message, "no column helps"


def test_a_batch_with_one_score_warns_of_nothing(small_server: SmallServer, caplog: pytest.LogCaptureFixture) -> None:
    with RewardScorer(small_server.address, "exact_match", failures=TOLERANT) as scorer:
        scorer.score([RewardSample("a cat", ["a cat"]), *[RewardSample("a cat", [])] * 20])
    assert warned(caplog) == []


def test_answers_that_are_all_too_long_warn_because_a_reward_of_0_says_nothing(
    small_server: SmallServer, caplog: pytest.LogCaptureFixture
) -> None:
    with RewardScorer(small_server.address, "exact_match", extraction="whole", max_answer_characters=4) as scorer:
        assert [reward.value for reward in scorer.score([RewardSample("a cat", ["a"])] * 8)] == [0.0] * 8
    (message,) = warned(caplog)
    assert message.startswith(
        "all 8 completions failed for the reward: the answer has 5 characters, more than 4 (see max"
    )
