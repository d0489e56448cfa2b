"""slime's posts."""

from types import MappingProxyType
from typing import Any

import pytest

from gradewire.rewards import RewardScorer
from gradewire.rewards.posts import answer_slime

POST: dict[str, Any] = {
    "prompt": [{"role": "user", "content": "What?"}],
    "response": "a cat<|im_end|>",
    "label": "a cat",
}


async def test_the_reply_is_the_reward(scorer: RewardScorer) -> None:
    assert (await answer_slime(scorer, POST)).body == 1.0
    keyed = await answer_slime(scorer, POST, reward_key="score")
    assert (keyed.body["score"], keyed.body["gradewire_status"]) == (1.0, "OK")


async def test_any_mapping_is_a_body(scorer: RewardScorer) -> None:
    assert (await answer_slime(scorer, MappingProxyType(POST))).body == 1.0


async def test_no_reward_is_asked_for_again(scorer: RewardScorer) -> None:
    reply = await answer_slime(scorer, {**POST, "response": "a dog"})
    assert (reply.status, reply.body["title"]) == (503, "No reward now")


async def test_a_missing_field_is_named(scorer: RewardScorer) -> None:
    reply = await answer_slime(scorer, {"prompt": "p", "response": "r"})
    assert reply.status == 400
    assert "label is missing from the body (found: prompt, response)" in reply.body["detail"]


@pytest.mark.parametrize("said", [None, 0, ["a cat"], {"content": "a cat"}])
async def test_what_is_no_text_is_refused_and_never_graded(scorer: RewardScorer, said: Any) -> None:
    reply = await answer_slime(scorer, {**POST, "response": said})
    assert (reply.status, f"response is a {type(said).__name__}: post a string" in reply.body["detail"]) == (400, True)
