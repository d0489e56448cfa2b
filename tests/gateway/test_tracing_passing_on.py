"""A gateway that traces nothing hands trace context on as it came; what metadata cannot carry stays behind."""

from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest
from tests.support.servers.gateway import SCORE, RunningGateway, gateway_over_method

from gradewire_proto.v1 import scoring_pb2

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
SEEN: dict[str, str] = {}


async def answer(_request: Any, context: Any) -> bytes:
    SEEN.clear()
    SEEN.update({key: value for key, value in context.invocation_metadata() if isinstance(value, str)})
    return scoring_pb2.ScoreResponse().SerializeToString()


@pytest.fixture
async def gateway() -> AsyncIterator[RunningGateway]:
    method: Any = grpc.unary_unary_rpc_method_handler(answer)
    async with gateway_over_method("Score", method) as running:
        yield running


async def test_context_and_what_is_said_of_events_go_on(gateway: RunningGateway) -> None:
    headers = {
        "traceparent": PARENT,
        "tracestate": "vendor=one",
        "x-gradewire-evaluated-span": PARENT,
        "x-gradewire-evaluation-events": "caller",
    }

    assert (await gateway.post(SCORE, {}, **headers)).status_code == 200

    assert headers.items() <= SEEN.items()


async def test_without_any_nothing_is_made_up(gateway: RunningGateway) -> None:
    assert (await gateway.post(SCORE, {})).status_code == 200

    assert not [key for key in SEEN if "trace" in key or "evaluat" in key]


async def test_what_metadata_cannot_carry_is_left_out_and_the_request_is_answered(gateway: RunningGateway) -> None:
    request = gateway.client.build_request("POST", SCORE, json={})
    request.headers = type(request.headers)(
        [*request.headers.raw, (b"traceparent", b"00-\xff\xfe-01"), (b"tracestate", b"x" * 4096)]
    )

    assert (await gateway.client.send(request)).status_code == 200

    assert not {"traceparent", "tracestate"} & SEEN.keys()
