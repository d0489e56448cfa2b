"""TRL's GRPOTrainer trains with rewards of a real server, some of which never come."""

import math
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset
from tests.client.rewards.holding_transport import HoldingTransport
from tests.client.small_server import SmallServer
from tests_frameworks.rewards.tiny_model import tiny_model, tiny_tokenizer
from trl import GRPOConfig, GRPOTrainer

from gradewire import Pair
from gradewire._transports.grpc_transport import GrpcTransport
from gradewire.rewards import FailureHandling, GroupReward, RewardFailureRate, RewardSample, RewardScorer
from gradewire.rewards.trl import AsyncTrlReward, TrlReward
from gradewire.transport import Endpoint

STEPS = 3


def is_late(item: Any) -> bool:
    return len(item.prediction) % 4 == 0


def share_of_vowels(item: Any) -> float:
    return sum(letter in "aeiou" for letter in item.prediction) / len(item.prediction)


def trainer(reward: Any, directory: Path) -> GRPOTrainer:
    tokenizer = tiny_tokenizer()
    arguments = GRPOConfig(
        output_dir=str(directory),
        max_steps=STEPS,
        per_device_train_batch_size=8,
        num_generations=4,
        max_completion_length=6,
        logging_steps=1,
        learning_rate=1e-3,
        report_to="none",
        save_strategy="no",
        use_cpu=True,
        bf16=False,
        log_completions=False,
        seed=1,
    )
    rows = [{"prompt": "what sleeps there", "answer": "a cat"}, {"prompt": "what barks there", "answer": "a dog"}] * 4
    return GRPOTrainer(
        tiny_model(tokenizer),
        reward_funcs=reward,
        args=arguments,
        train_dataset=Dataset.from_list(rows),
        processing_class=tokenizer,
    )


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
@pytest.mark.parametrize("kind", [TrlReward, AsyncTrlReward])
def test_grpo_trains_and_leaves_out_what_has_no_reward(small_server: SmallServer, tmp_path: Path, kind: type) -> None:
    small_server.script.score = share_of_vowels
    transport = HoldingTransport(GrpcTransport(Endpoint(small_server.address)), is_late, 60.0)
    given: list[list[float | None]] = []
    with RewardScorer(transport, deadline_s=1, failures=FailureHandling(max_failure_rate=1)) as scorer:
        reward = kind(scorer)
        values_of = reward._values

        def noted(*arguments: Any) -> list[float | None]:
            given.append(values_of(*arguments))
            return given[-1]

        reward._values = noted
        run = trainer(reward, tmp_path)
        run.train()
    logged = [entry for entry in run.state.log_history if "rewards/gradewire/mean" in entry]
    assert len(logged) == len(given) == STEPS
    assert any(value is None for values in given for value in values)
    for entry, values in zip(logged, given, strict=True):
        scored = [value for value in values if value is not None]
        assert entry["rewards/gradewire/mean"] == pytest.approx(sum(scored) / len(scored), rel=1e-5)
        assert entry["gradewire/failed"] + entry["gradewire/empty"] == pytest.approx(1 - len(scored) / len(values))
        assert math.isfinite(entry["loss"])
        assert math.isfinite(entry["grad_norm"])


def more_vowels(pair: Any) -> Any:
    """The answer with more vowels wins; for some pairs nobody can decide."""
    counts = [sum(letter in "aeiou" for letter in answer) for answer in (pair.answer_a, pair.answer_b)]
    if sum(counts) % 5 == 0:
        return None
    return "tie" if counts[0] == counts[1] else "ab"[counts[1] > counts[0]]


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
@pytest.mark.parametrize("kind", [TrlReward, AsyncTrlReward])
def test_grpo_trains_with_shares_of_won_pairs(small_server: SmallServer, tmp_path: Path, kind: type) -> None:
    small_server.script.winner = more_vowels
    given: list[tuple[list[str], list[float | None]]] = []
    with GroupReward(small_server.address, num_generations=4, failures=FailureHandling(max_failure_rate=1)) as scorer:
        reward = kind(scorer)
        values_of = reward._values

        def noted(rewards: Any, *arguments: Any) -> list[float | None]:
            given.append(([each.answer for each in rewards], values_of(rewards, *arguments)))
            return given[-1][1]

        reward._values = noted
        run = trainer(reward, tmp_path)
        run.train()
        assert scorer.cost.pairs > 0
    logged = [entry for entry in run.state.log_history if "rewards/gradewire/mean" in entry]
    assert len(logged) == len(given) == STEPS
    assert any(value is not None for _, values in given for value in values)
    for entry, (answers, values) in zip(logged, given, strict=True):
        for start in range(0, len(answers), 4):
            assert values[start : start + 4] == shares(answers[start : start + 4])
        scored = [value for value in values if value is not None]
        if scored:
            assert entry["rewards/gradewire/mean"] == pytest.approx(sum(scored) / len(scored), rel=1e-5)
        assert math.isfinite(entry["loss"])
        assert math.isfinite(entry["grad_norm"])


def shares(answers: list[str]) -> list[float | None]:
    """Return the expected rewards of a group: the share of decided pairs that each answer wins."""
    found = []
    for place, answer in enumerate(answers):
        others = [other for number, other in enumerate(answers) if number != place and other.split() != answer.split()]
        results = [more_vowels(Pair("", answer, other)) for other in others if other and answer]
        decided = [result for result in results if result in {"a", "b"}]
        found.append(decided.count("a") / len(decided) if decided else None)
    return found


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
def test_too_many_failures_stop_the_training(small_server: SmallServer, tmp_path: Path) -> None:
    transport = HoldingTransport(GrpcTransport(Endpoint(small_server.address)), lambda _: True, 60.0)
    with RewardScorer(transport, deadline_s=0.2, failures=FailureHandling(window=32)) as scorer:
        scorer.score([RewardSample("a cat", ["a cat"])] * 31)
        with pytest.raises(RewardFailureRate, match="TIMEOUT"):
            trainer(TrlReward(scorer), tmp_path).train()
