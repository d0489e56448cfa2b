"""OpenRLHF's posts."""

from typing import Any

import pytest

from gradewire.rewards import RewardScorer
from gradewire.rewards.posts import answer_openrlhf

PROMPT = "<|im_start|>user\nWhat sleeps?<|im_end|>\n<|im_start|>assistant\n"


def post(*completions: str, label: Any = "a cat") -> dict[str, Any]:
    return {
        "query": [PROMPT + completion for completion in completions],
        "prompts": [PROMPT] * len(completions),
        "labels": [label] * len(completions),
    }


async def test_the_reward_of_one_sample(scorer: RewardScorer) -> None:
    reply = await answer_openrlhf(scorer, post("a cat<|im_end|>\n"))
    assert (reply.status, reply.body["rewards"], reply.body["scores"]) == (200, [1.0], [1.0])
    assert reply.body["extra_logs"] == {"gradewire_scored": [1.0]}
    assert reply.body["gradewire"][0]["gradewire_line"] == "correctness/1,value_match/1"


async def test_a_prompt_that_decoding_changed_is_told_by_its_template(scorer: RewardScorer) -> None:
    body = post("a cat<|endoftext|>")
    body["query"][0] = "<s> " + body["query"][0].replace("What", " What")
    assert (await answer_openrlhf(scorer, body)).body["rewards"] == [1.0]
    body["query"][0] = "no template: a cat"
    reply = await answer_openrlhf(scorer, body)
    assert (reply.status, "query[0]" in reply.body["detail"]) == (400, True)


async def test_no_reward_is_no_number(scorer: RewardScorer) -> None:
    late = await answer_openrlhf(scorer, post("a dog", "a cat"))
    assert (late.status, late.headers["Retry-After"]) == (503, "1")
    assert "1 of 2 samples have no reward: TIMEOUT: " in late.body["detail"]
    assert late.body["rewards"][1]["gradewire_status"] == "OK"
    empty = await answer_openrlhf(scorer, post("<|im_end|>"))
    assert (empty.status, empty.body["rewards"][0]["gradewire_status"]) == (422, "EMPTY_PREDICTION")


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"labels": None}, "labels is a NoneType"),
        ({"prompts": []}, "1, 0 and 1 entries"),
        ({"query": [["a cat"]]}, "query[0] is a list: post a string"),
        ({"prompts": [None]}, "prompts[0] is a NoneType: post a string"),
        (None, "body is a list"),
    ],
)
async def test_wrong_posts_are_told_what_is_wrong(
    scorer: RewardScorer, change: dict[str, Any] | None, named: str
) -> None:
    reply = await answer_openrlhf(scorer, [] if change is None else {**post("a cat"), **change})
    assert (reply.status, named in reply.body["detail"]) == (400, True)
