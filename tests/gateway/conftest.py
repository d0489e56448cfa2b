"""A gateway in front of a server over the hash engine, both on real sockets in the test's event loop."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.support.servers.gateway import RunningGateway, gateway_over
from tests.support.servers.wire import Wire, wire_server

from gradewire_gateway.settings import RewardPostSettings


@pytest.fixture
async def wire() -> AsyncIterator[Wire]:
    async with wire_server() as running:
        yield running


@pytest.fixture
async def gateway(wire: Wire) -> AsyncIterator[RunningGateway]:
    async with gateway_over(f"127.0.0.1:{wire.port}", max_body_bytes=100_000) as running:
        yield running


EXACT = RewardPostSettings(metric="exact_match", deadline_s=10)


@pytest.fixture
async def posts(wire: Wire) -> AsyncIterator[RunningGateway]:
    async with gateway_over(f"127.0.0.1:{wire.port}", rewards=EXACT, max_body_bytes=100_000) as running:
        yield running


def slime_post(said: str = "the cat", label: Any = "the cat") -> dict[str, Any]:
    return {"prompt": [{"role": "user", "content": "what?"}], "response": said, "label": label}


def openrlhf_post(*said: str, label: Any = "the cat") -> dict[str, Any]:
    return {
        "query": [f"User: what?\nAssistant: {each}" for each in said],
        "prompts": ["User: what?\nAssistant: "] * len(said),
        "labels": [label] * len(said),
    }


def gym_post(said: str = "the cat", **further: Any) -> dict[str, Any]:
    message = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": said}]}
    return {
        "responses_create_params": {"input": [{"role": "user", "content": "what?"}]},
        "response": {"id": "r", "output": [message]},
        "expected_answer": "the cat",
        **further,
    }
