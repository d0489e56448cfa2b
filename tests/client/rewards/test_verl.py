"""verl's reward function (tests_frameworks/rewards runs verl's own managers with it)."""

import math
from typing import Any

import pytest
from tests.client.small_server import SmallServer

from gradewire import InvalidRequest
from gradewire.rewards.verl import compute_score, verl_scorer


def settings(server: SmallServer, **more: Any) -> dict[str, Any]:
    return {"address": server.address, "policy": "exclude", **more}


async def test_a_response_is_scored_as_verl_calls_for_it(small_server: SmallServer) -> None:
    result = await compute_score(
        data_source="qa",
        solution_str="<think>hm</think>a cat",
        ground_truth={"target": ["a cat"]},
        extra_info={"question": "What?", "num_turns": None},
        reward_router_address=None,
        reward_model_tokenizer=None,
        **settings(small_server),
    )
    await verl_scorer(settings(small_server)).aclose()
    assert (result["score"], result["gradewire_status"], result["gradewire_line"]) == (
        *(1.0, "OK", "correctness/1,value_match/1"),
    )


async def test_a_response_without_an_answer_is_nan_and_no_zero(small_server: SmallServer) -> None:
    result = await compute_score("qa", "<think>hm", "a cat", **settings(small_server))
    assert math.isnan(result["score"])
    assert result["gradewire_status"] == "EMPTY_PREDICTION"
    assert (await compute_score("qa", "", "a cat", **settings(small_server, empty_value=-1.0)))["score"] == -1.0


@pytest.mark.parametrize(
    ("given", "missing"),
    [
        ({}, "policy is missing"),
        ({"policy": "raise"}, "empty_value is missing"),
        ({"policy": "hold"}, "empty_value"),
        ({"policy": "hold", "empty_value": 0.0, "uncertain": "exclude"}, "uncertain='exclude' with policy='hold'"),
    ],
)
async def test_settings_that_could_spoil_a_run_are_refused(given: dict[str, Any], missing: str) -> None:
    with pytest.raises(InvalidRequest, match=missing):
        await compute_score("qa", "a", "a", **given)
