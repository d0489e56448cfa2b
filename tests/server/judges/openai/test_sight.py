"""Whether an OpenAI-compatible server's model sees: what the server says, and what its operator says."""

from dataclasses import replace
from typing import Any

import pytest
from tests.server.judges.remote.remote import choose, opened
from tests.support.fakes.odd_openai import OddServer, completion, reply

from gradewire_server.domain.image import Image
from gradewire_server.domain.judge import Choice, Choose
from gradewire_server.domain.result import Failure, Status

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
