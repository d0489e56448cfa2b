"""Whether an OpenAI-compatible server's model sees: what the server says, and what its operator says."""

from dataclasses import replace
from typing import Any

import pytest
from tests.server.judges.remote.remote_judges import choose, opened
from tests.support.fakes.odd_openai import OddServer, completion, reply

from gradewire_server.domain.items import Failure, Image, Status
from gradewire_server.domain.judge import Choice, Choose

SAYS_3 = completion(" 3", [{" 3": -0.1, " 1": -3.0}], prompt_tokens=9, completion_tokens=1)
MULTIMODAL = {"models": [{"name": "m", "capabilities": ["completion", "multimodal"]}], "data": [{"id": "m"}]}
BLIND = {"models": [{"name": "m", "capabilities": ["completion"]}], "data": [{"id": "m"}]}


def listing(entry: dict[str, Any]) -> dict[str, Any]:
    return {"object": "list", "data": [{"id": "other", "capabilities": {"vision": True}}, {"id": "m", **entry}]}


def showing() -> Choose:
    need = choose()
    image = Image(data=b"\x89PNG", media_type="image/png", digest="d")
    return replace(need, prompt=replace(need.prompt, images=(image,)))


@pytest.mark.parametrize(
    ("models", "says", "sees"),
    [
        (MULTIMODAL, "auto", True),
        (MULTIMODAL, "no", False),
        (BLIND, "auto", False),
        (BLIND, "yes", False),
        (listing({}), "auto", False),
        (listing({}), "yes", True),
        (listing({"capabilities": {"vision": True}}), "auto", True),
        (listing({"capabilities": {"vision": "yes"}}), "auto", False),
        (listing({"architecture": {"input_modalities": ["text", "image"]}}), "auto", True),
        (listing({"architecture": {"input_modalities": ["text"]}}), "yes", False),
        (listing({"architecture": 3, "capabilities": None}), "auto", False),
    ],
)
async def test_its_list_of_models_counts_where_its_operator_leaves_it_open(
    models: Any, says: str, sees: object
) -> None:
    async with OddServer(models=reply(200, models)) as server, opened(server.url, sees_images=says) as judge:
        assert judge.status.sees_images is sees


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (400, "m is not a multimodal model"),
        (422, "image_url is not supported by this model"),
        (500, "image input is not supported - hint: you may need to provide the mmproj"),
    ],
)
async def test_a_server_that_refuses_pictures_gives_that_status_and_stays_in_use(status: int, words: str) -> None:
    answers = [SAYS_3, reply(status, {"error": {"message": words}}), SAYS_3]
    async with OddServer(answers=answers) as server, opened(server.url, sees_images="yes") as judge:
        first = (await judge.choose(showing())).answer
        refused = (await judge.choose(showing())).answer
        after = (await judge.choose(choose())).answer
    assert isinstance(first, Choice)
    assert isinstance(after, Choice)
    assert isinstance(refused, Failure)
    assert (refused.status, judge.trouble()) == (Status.JUDGE_CANNOT_SEE, "")
    assert "judge_sees_images" in refused.message
    assert server.heard[0].body["messages"][-1]["content"][0]["image_url"]["url"] == "data:image/png;base64,iVBORw=="


async def test_what_is_wrong_with_a_picture_is_not_said_of_the_model() -> None:
    answers = [reply(500, {"error": {"message": "Failed to load image or audio file"}}), SAYS_3]
    async with OddServer(answers=answers) as server, opened(server.url, sees_images="yes") as judge:
        refused = (await judge.choose(showing())).answer
        assert isinstance((await judge.choose(choose())).answer, Choice)
        assert (len(server.heard), judge.trouble()) == (2, "")  # neither sent again, nor is the server away
    assert isinstance(refused, Failure)
    assert refused.status is Status.INVALID_INPUT
    assert refused.message.startswith("images: the judge's server refuses these images (status 500)")


async def test_a_server_that_wants_fewer_requests_with_pictures_is_asked_again() -> None:
    words = "Rate limit reached for gpt-vision-preview on images per minute"
    answers = [reply(429, {"error": {"message": words}}, retry_after="0"), SAYS_3]
    async with OddServer(answers=answers) as server, opened(server.url, sees_images="yes") as judge:
        assert isinstance((await judge.choose(showing())).answer, Choice)


async def test_a_feature_that_is_refused_beside_a_picture_is_left_out_as_ever() -> None:
    words = "logprobs are not supported by this vision model"
    refusal = reply(400, {"error": {"message": words}})
    answers = [refusal, refusal, completion("3"), completion("3")]
    async with OddServer(answers=answers) as server, opened(server.url, sees_images="yes") as judge:
        assert isinstance((await judge.choose(showing())).answer, Choice)
    assert ["logprobs" in heard.body for heard in server.heard] == [True, True, False, False]


async def test_pictures_that_are_too_long_are_named_beside_the_texts() -> None:
    words = (
        "The prompt is longer than the maximum model length of 4096. For image inputs, the number of image tokens "
        "depends on the number of images: multimodal"
    )
    answers = [reply(400, {"error": {"message": words}})]
    async with OddServer(answers=answers) as server, opened(server.url, sees_images="yes") as judge:
        refused = (await judge.choose(showing())).answer
    assert isinstance(refused, Failure)
    assert (refused.status, refused.message[:9]) == (Status.INVALID_INPUT, "pictures,")
