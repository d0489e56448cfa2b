"""The chat endpoint, called by the openai client over a real socket; the judge is a script."""

import base64
from collections.abc import AsyncIterator
from typing import Any

import openai
import pytest
from tests.support.engines.hash_engine import HashEngine
from tests.support.judges.scripted import saying, shown
from tests.support.servers.gateway import RunningGateway, gateway_over
from tests.support.servers.wire import Wire, wire_server

from gradewire_server.domain.items import Failure, Status

CHAT = "/v1/chat/completions"
HELLO = [{"role": "user", "content": "Say hello."}]


@pytest.fixture
async def wire() -> AsyncIterator[Wire]:
    engine = HashEngine()
    engine.script.on_generate = saying("hello there you")
    async with wire_server(engine=engine) as running:
        yield running


@pytest.fixture
async def gateway(wire: Wire) -> AsyncIterator[RunningGateway]:
    async with gateway_over(f"127.0.0.1:{wire.port}") as running:
        yield running


@pytest.fixture
async def client(gateway: RunningGateway) -> AsyncIterator[Any]:
    base = f"http://127.0.0.1:{gateway.port}/v1"
    async with openai.AsyncOpenAI(base_url=base, api_key="any", max_retries=0) as made:
        yield made


async def test_the_openai_client_gets_an_answer(client: Any, wire: Wire) -> None:
    messages = [{"role": "system", "content": "Be brief."}, *HELLO]
    reply = await client.chat.completions.create(model="scripted", messages=messages, temperature=0, stop=["\n"])
    (choice,) = reply.choices
    assert (choice.message.role, choice.message.content, choice.finish_reason) == (
        "assistant",
        "hello there you",
        "stop",
    )
    assert reply.model == "scripted"
    assert reply.usage.total_tokens == reply.usage.prompt_tokens + reply.usage.completion_tokens
    (need,) = wire.engine.script.asked
    assert shown(need.prompt) == "system: Be brief.\nuser: Say hello.\nassistant: "
    assert need.stop == ("\n",)


async def test_an_answer_that_is_cut_says_so(client: Any) -> None:
    reply = await client.chat.completions.create(model="default", messages=HELLO, max_tokens=1)
    assert (reply.choices[0].message.content, reply.choices[0].finish_reason) == ("hello", "length")


async def test_judges_are_its_models(client: Any) -> None:
    assert [model.id async for model in client.models.list()] == ["scripted"]


async def test_parts_of_a_message_are_texts_and_pictures(gateway: RunningGateway, wire: Wire) -> None:
    uri = f"data:image/png;base64,{base64.b64encode(b'picture').decode()}"
    parts = [
        {"type": "image_url", "image_url": {"url": uri}},
        {"type": "text", "text": "What is it?"},
        {"type": "text", "text": "One word."},
    ]
    reply = await gateway.post(CHAT, {"messages": [{"role": "user", "content": parts}]})
    assert reply.status_code == 200
    (need,) = wire.engine.script.asked
    assert need.prompt.lead == "What is it?\nOne word."
    assert [image.uri for image in need.prompt.images] == [uri]


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"temperature": 0.7}, "temperature"),
        ({"stream": True}, "stream"),
        ({"n": 2}, "n"),
        ({"tools": [{}]}, "tools"),
        ({"logprobs": True}, "logprobs"),
        ({"response_format": {"type": "json_object"}}, "response_format"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": "7"}, "max_tokens"),
        ({"stop": 7}, "stop"),
        ({"stop": ["a", 7]}, "stop[1]"),
        ({"model": 7}, "model"),
        ({"messages": None}, "messages"),
        ({"messages": [7]}, "messages[0]"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "user"}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": [{"type": "audio"}]}]}, "messages[0].content[0].type"),
        ({"messages": []}, "turns"),
        ({"messages": [{"role": "system", "content": "x"}]}, "turns[0].role"),
    ],
)
async def test_what_a_judge_cannot_do_is_refused(
    gateway: RunningGateway, wire: Wire, fields: dict[str, Any], field: str
) -> None:
    reply = await gateway.post(CHAT, {"messages": HELLO} | fields)
    assert (reply.status_code, reply.json()["code"], reply.json()["field"]) == (400, "invalid_argument", field)
    assert not wire.engine.script.asked


@pytest.mark.parametrize("value", [None, 0, 0.0])
async def test_what_changes_nothing_is_taken(gateway: RunningGateway, value: float | None) -> None:
    asked = {"messages": HELLO, "temperature": value, "n": 1, "stream": False, "seed": 7, "user": "me", "tools": None}
    assert (await gateway.post(CHAT, asked)).status_code == 200


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (Status.UNAVAILABLE, openai.InternalServerError),
        (Status.TIMEOUT, openai.InternalServerError),
        (Status.INVALID_INPUT, openai.BadRequestError),
        (Status.JUDGE_CANNOT_SEE, openai.BadRequestError),
    ],
)
async def test_a_judge_that_fails_is_an_error(client: Any, wire: Wire, status: Status, expected: type) -> None:
    wire.engine.script.failure = Failure(status, "this is why", retry_after_s=2.0)
    with pytest.raises(expected, match="this is why") as caught:
        await client.chat.completions.create(model="default", messages=HELLO)
    assert caught.value.code in {"unavailable", "deadline_exceeded", "invalid_argument", "failed_precondition"}
    assert caught.value.response.headers["retry-after"] == "2"


async def test_a_judge_that_is_not_there_is_named(client: Any) -> None:
    with pytest.raises(openai.BadRequestError, match="there is no judge 'gpt-x'"):
        await client.chat.completions.create(model="gpt-x", messages=HELLO)
