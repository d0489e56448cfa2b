"""512 completions on a real server, of which a tenth get no answer in time and a twentieth are empty."""

import asyncio
import math
from typing import Any

import pytest
from tests.client.rewards.holding_transport import HoldingTransport
from tests.support.servers.server_process import ServerProcess

from gradewire import Client, ScoreWarning, Status
from gradewire._transports.grpc_transport import GrpcTransport
from gradewire.rewards import RewardSample, RewardScorer
from gradewire.rewards.trl import AsyncTrlReward, TrlReward
from gradewire.rewards.verl import compute_score
from gradewire.transport import Endpoint

ANIMALS = ("cat", "dog", "horse", "parrot", "small lizard", "very old tortoise")
PLACES = ("on the sill", "under the oak", "in the barn", "by the river")
COMPLETIONS = 512
QUESTION = "What sleeps there?"
LATE = "cannot be scored in time"


def completion(index: int) -> str:
    if index % 20 == 7:  # 5 %: nothing is said, or nothing behind the thinking
        return "" if index % 40 == 7 else "<think>A cat? A dog?"
    said = f"A {ANIMALS[index % len(ANIMALS)]} sleeps {PLACES[index % len(PLACES)]}."
    if index % 10 == 3:  # 10 %
        return f"{said} It {LATE}."
    return f"<think>Let me see: {index}.</think>{said}"


def reference(index: int) -> str:
    return ANIMALS[index % 3]


ALL = range(COMPLETIONS)
EMPTY = {index for index in ALL if index % 20 == 7}
TIMED_OUT = {index for index in ALL if index % 10 == 3}
SCORED = sorted(set(ALL) - EMPTY - TIMED_OUT)


@pytest.fixture(scope="module")
def own_scores(server: ServerProcess) -> dict[int, float]:
    """What the client's own call gives for the same answers."""
    rows = [
        {
            "references": [reference(index)],
            "prediction": completion(index).rpartition("</think>")[2],
            "question": QUESTION,
        }
        for index in SCORED
    ]
    with Client(server.address) as client:
        results = [item.scores["correctness"] for item in client.score(rows, "correctness")]
    limits = [0.5 if ScoreWarning.UNCERTAIN in result.warnings else 1.0 for result in results]
    assert 0.5 in limits
    return {
        index: min(result.score, limit)
        for index, result, limit in zip(SCORED, results, limits, strict=True)
        if result.score is not None
    }


@pytest.fixture
def transport(server: ServerProcess) -> HoldingTransport:
    """To the real server, whose results for some items come when nobody waits any more."""
    return HoldingTransport(GrpcTransport(Endpoint(server.address)), lambda item: LATE in item.prediction, 60.0)


def check(values: dict[int, float | None], own_scores: dict[int, float]) -> None:
    assert {index: values[index] for index in SCORED} == own_scores
    assert all(values[index] is None for index in EMPTY | TIMED_OUT)
    assert (len(SCORED), len(EMPTY), len(TIMED_OUT)) == (435, 26, 51)


@pytest.mark.parametrize("kind", [TrlReward, AsyncTrlReward])
def test_trl_gets_the_clients_own_scores_and_none_for_the_rest(
    transport: HoldingTransport, own_scores: dict[int, float], kind: Any
) -> None:
    statuses: list[str] = []

    def log_extra(column: str, told: list[str]) -> None:
        if column == "gradewire_status":
            statuses.extend(told)

    batch = {
        "prompts": [QUESTION] * COMPLETIONS,
        "completions": [completion(index) for index in ALL],
        "answer": [reference(index) for index in ALL],
    }
    with RewardScorer(transport, deadline_s=3) as scorer:
        values = kind(scorer)(**batch, log_extra=log_extra)
        if kind is AsyncTrlReward:
            values = asyncio.run(values)
    check(dict(enumerate(values)), own_scores)
    assert {index for index in ALL if statuses[index] == "TIMEOUT"} == TIMED_OUT
    assert {index for index in ALL if statuses[index] == "EMPTY_PREDICTION"} == EMPTY


async def test_verl_gets_them_one_call_a_sample(transport: HoldingTransport, own_scores: dict[int, float]) -> None:
    settings = {"transport": transport, "deadline_s": 3.0, "policy": "exclude"}
    results = await asyncio.gather(
        *[
            compute_score(
                data_source="animals",
                solution_str=completion(index),
                ground_truth=reference(index),
                extra_info={"question": QUESTION},
                **settings,
            )
            for index in ALL
        ]
    )
    values = [None if math.isnan(result["score"]) else result["score"] for result in results]
    check(dict(enumerate(values)), own_scores)
    assert {index for index in ALL if results[index]["gradewire_status"] == "TIMEOUT"} == TIMED_OUT
    assert {len(result["gradewire_digest"]) for index, result in enumerate(results) if index in own_scores} == {64}
    assert transport.streams <= math.ceil(COMPLETIONS / 128)
    await transport.close()


def test_a_sample_without_references_is_invalid_and_no_zero(server: ServerProcess) -> None:
    with RewardScorer(server.address) as scorer:
        right, none = scorer.score([RewardSample("a cat", ["a cat"]), RewardSample("a cat", [])])
    assert right.value is not None
    assert right.value > 0.9
    assert (none.value, none.status) == (None, Status.INVALID_INPUT)


def test_a_verdict_is_a_reward_of_its_own(server: ServerProcess) -> None:
    with RewardScorer(server.address, "exact_match", reads="correct") as scorer:
        values = [
            reward.value for reward in scorer.score([RewardSample(text, ["a cat"]) for text in ("a cat", "cats")])
        ]
    assert values == [1.0, 0.0]
