"""A tenant that has used up its quota is refused or slowed, counted and named in the log; others notice nothing."""

import asyncio
from typing import Any

import pytest
from prometheus_client import generate_latest
from tests.support.servers.wire import Wire, wire_server

from gradewire_proto.v1 import scoring_pb2, types_pb2
from gradewire_proto.wire_rules import token_of
from gradewire_server.domain.caller import Caller
from gradewire_server.settings.limits import Capacity
from gradewire_server.tenants.quota import TokenBucket
from gradewire_server.tenants.tokens import Authentication

_EXACT = types_pb2.MetricSpec(exact_match=types_pb2.ExactMatchParameters())


class Tenants(Authentication):
    """Tokens are names of tenants, which share the one namespace of the server in these tests."""

    def __init__(self) -> None:
        super().__init__()
        self._callers = {
            name: Caller(name, quota=TokenBucket(quota), tenant=name)
            for name, quota in (("poor", 60), ("rich", 600_000))
        }

    def caller(self, authorization: str, peer: str) -> Caller:
        return self._callers.get(token_of(authorization), Caller(peer))


@pytest.fixture
def authentication() -> Authentication:
    return Tenants()


def metadata(token: str) -> list[tuple[str, str]]:
    return [("authorization", f"Bearer {token}")]


def request_of(size: int) -> scoring_pb2.ScoreRequest:
    item = types_pb2.Item(question="x" * size, references=["a"], prediction="a")
    return scoring_pb2.ScoreRequest(items=[item], metrics=[_EXACT])


async def stream(wire: Wire, token: str, reference_set: str = "") -> Any:
    """A stream of one item; with a name of a set, which may be long, its first message alone."""
    call = wire.scoring.ScoreStream(metadata=metadata(token))
    config = scoring_pb2.ScoreStreamConfig(metrics=[_EXACT], reference_set=reference_set)
    await call.write(scoring_pb2.ScoreStreamRequest(config=config))
    if reference_set:
        return call
    items = scoring_pb2.ScoreStreamItems(items=request_of(1000).items)
    await call.write(scoring_pb2.ScoreStreamRequest(items=items))
    await call.done_writing()
    return call


def refusals(wire: Wire, tenant: str) -> float | None:
    return wire.registry.get_sample_value("gradewire_quota_refusals_total", {"tenant": tenant})


def text_tokens(wire: Wire, tenant: str) -> float:
    return wire.registry.get_sample_value("gradewire_tenant_text_tokens_total", {"tenant": tenant}) or 0.0


async def test_a_refused_call_is_counted_and_every_call_is_logged_by_tenant(authentication: Authentication) -> None:
    async with wire_server(authentication=authentication) as wire:
        codes = [
            (await wire.scoring.Score(request_of(1000), metadata=metadata(token)).code()).name
            for token in ("poor", "poor", "rich", "own")
        ]
        assert codes == ["OK", "RESOURCE_EXHAUSTED", "OK", "OK"]
        assert refusals(wire, "poor") == 1
        assert refusals(wire, "rich") is None
        tokens = -(-request_of(1000).ByteSize() // 4)
        for tenant, ended in (("poor", {"OK": 1, "RESOURCE_EXHAUSTED": 1}), ("rich", {"OK": 1})):
            found = {
                code: wire.registry.get_sample_value("gradewire_tenant_calls_total", {"tenant": tenant, "code": code})
                for code in ended
            }
            assert found == ended
            assert text_tokens(wire, tenant) == tokens, "what was refused is not counted"
        assert 'tenant=""' not in generate_latest(wire.registry).decode(), "who has no tenant is not counted"
        tenants = [line.get("tenant") for line in await wire.log_lines()]
        assert tenants == ["poor", "poor", "rich", None]


async def test_streams_that_wait_for_a_quota_take_no_room_from_others(authentication: Authentication) -> None:
    # Room for messages that wait: 30 000 bytes, and 10 000 for quotas, of which one tenant has a quarter.
    async with wire_server(authentication=authentication, capacity=Capacity(max_stream_bytes=80_000)) as wire:
        await wire.scoring.Score(request_of(1000), metadata=metadata("poor"))  # a debt that takes minutes to pay off
        slowed = [await stream(wire, "poor", "x" * 1000) for _ in range(60)]
        codes = asyncio.as_completed([each.code() for each in slowed])
        refused = [(await next(codes)).name for _ in range(58)]
        assert refused == ["RESOURCE_EXHAUSTED"] * 58
        assert refusals(wire, "poor") == 58
        admission = wire.handlers.context.admission
        assert 2000 < admission.slowed.taken < 2500
        assert admission.waiting_bytes.taken == 0
        before = text_tokens(wire, "rich")
        rich = await stream(wire, "rich")
        assert [item.complete async for reply in rich for item in reply.items] == [True]
        assert text_tokens(wire, "rich") - before > 250, "messages of streams are counted as they come"
        for each in slowed:
            each.cancel()
        await wire.calls.idle()
        assert admission.slowed.taken == 0
