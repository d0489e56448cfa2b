"""TRL's reward functions, called as its trainer calls them (tests_frameworks/rewards runs the trainer itself)."""

import asyncio
import inspect
import math
from typing import Any

import pytest
from tests.client.small_server import SmallServer

from gradewire import InvalidRequest
from gradewire.rewards import RewardScorer
from gradewire.rewards.trl import AsyncTrlReward, TrlReward

CHAT = [{"role": "user", "content": "What sleeps?"}]


class Logged:
    """What TRL hands in to log with."""

    def __init__(self) -> None:
        self.columns: dict[str, list[Any]] = {}
        self.metrics: dict[str, float] = {}

    def log_extra(self, column: str, values: list[Any]) -> None:
        self.columns[column] = values

    def log_metric(self, name: str, value: float) -> None:
        self.metrics[name] = value

    def arguments(self) -> dict[str, Any]:
        return {"log_extra": self.log_extra, "log_metric": self.log_metric}


BATCH: dict[str, Any] = {
    "prompts": [CHAT, CHAT, "Who barks?"],
    "completions": [[{"role": "assistant", "content": r"\boxed{a cat}"}], [{"role": "assistant", "content": ""}], "x"],
    "completion_ids": [[1], [2], [3]],
    "answer": ["a cat", "a cat", ["a dog", "dogs"]],
    "trainer_state": None,
}


@pytest.mark.parametrize("kind", [TrlReward, AsyncTrlReward])
def test_rewards_come_in_order_and_none_stands_for_no_reward(small_server: SmallServer, kind: type) -> None:
    logged = Logged()
    with RewardScorer(small_server.address) as scorer:
        function = kind(scorer)
        values = function(**BATCH, **logged.arguments())
        if inspect.iscoroutine(values):
            values = asyncio.run(values)
    assert values == [1.0, None, 0.0]
    assert logged.metrics == {"gradewire/failed": 0.0, "gradewire/empty": 1 / 3, "gradewire/uncertain": 0.0}
    assert logged.columns["gradewire_status"] == ["OK", "EMPTY_PREDICTION", "OK"]
    assert logged.columns["gradewire_line"][0] == "correctness/1,value_match/1"
    assert not any(math.isnan(value) for value in values if value is not None)


def test_the_metric_is_given_question_and_references(small_server: SmallServer) -> None:
    seen = []
    small_server.script.score = lambda item: float(len(seen.append(item) or item.references))  # type: ignore[func-returns-value]
    with RewardScorer(small_server.address) as scorer:
        TrlReward(scorer)(**BATCH)
    assert [(item.question, list(item.references)) for item in seen] == [
        ("What sleeps?", ["a cat"]),
        ("Who barks?", ["a dog", "dogs"]),
    ]


def test_columns_can_be_named_and_missing_ones_are(small_server: SmallServer) -> None:
    with RewardScorer(small_server.address) as scorer:
        function = TrlReward(scorer, references="gold", question="asked", name="right")
        with pytest.raises(InvalidRequest, match="question: there is no column topic; the columns are: "):
            TrlReward(scorer, question="topic")(**BATCH)
        with pytest.raises(InvalidRequest, match="3 completions, 2 references and 3 questions"):
            TrlReward(scorer)(**{**BATCH, "answer": ["a", "b"]})
        with pytest.raises(InvalidRequest, match="no column gold; the columns are: answer"):
            function(prompts=["p"], completions=["a"], answer=["a"])
        assert function(prompts=["p"], completions=["a"], gold=["a"], asked=["q"]) == [1.0]
        assert function.__name__ == "right"


def test_trl_sees_which_one_to_await() -> None:
    scorer = RewardScorer()
    assert inspect.iscoroutinefunction(AsyncTrlReward(scorer).__call__)
    assert not inspect.iscoroutinefunction(TrlReward(scorer).__call__)
