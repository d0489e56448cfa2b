"""The gateway's transport carries all that a client's does, over the gateway's own channel."""

from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import grpc
import pytest
from grpc import aio
from tests.support.servers.wire import Wire, wire_server

from gradewire import AccessDenied, AsyncClient, ServerUnreachable
from gradewire.transport import SCORE_STREAM
from gradewire_gateway.rewards_transport import UpstreamTransport
from gradewire_gateway.settings import UpstreamSettings
from gradewire_gateway.upstream import Upstream
from gradewire_proto.v1 import scoring_pb2

ROWS = [{"references": ["the cat"], "prediction": "the cat"}]

PAIRS = [{"question": "what?", "answer_a": "the cat", "answer_b": "a dog"}]


async def test_a_client_over_it_gets_what_any_client_gets(wire: Wire) -> None:
    upstream = Upstream(UpstreamSettings(target=f"127.0.0.1:{wire.port}"))
    async with AsyncClient(transport=UpstreamTransport(lambda: upstream, ())) as client:
        report = await client.score(ROWS, "exact_match")
        assert report.items[0].scores["exact_match"].score == 1.0
        streamed = [item async for item in client.score_stream(ROWS, "exact_match")]
        assert streamed[0].scores["exact_match"].score == 1.0
        assert (await client.prepare([["the cat"]], "smile")).entries == 1
        assert (await client.models()).metrics
    assert all(line["request_id"].startswith("rewards-") for line in await wire.log_lines())
    await upstream.close()


async def test_refusals_are_the_client_s_errors() -> None:
    async with wire_server(tokens=("right",)) as wire:
        upstream = Upstream(UpstreamSettings(target=f"127.0.0.1:{wire.port}"))
        async with AsyncClient(transport=UpstreamTransport(lambda: upstream, ())) as client:
            with pytest.raises(AccessDenied, match="Bearer TOKEN"):
                await client.score(ROWS, "exact_match")
            with pytest.raises(AccessDenied, match="Bearer TOKEN"):
                _ = [item async for item in client.score_stream(ROWS, "exact_match")]
            with pytest.raises(AccessDenied, match="Bearer TOKEN"):
                await client.compare(PAIRS)
            with pytest.raises(AccessDenied, match="Bearer TOKEN"):
                _ = [pair async for pair in client.compare_stream(PAIRS)]
        await upstream.close()
        async with AsyncClient(transport=UpstreamTransport(lambda: upstream, ()), deadline_s=0.3) as client:
            with pytest.raises(ServerUnreachable, match="stopping"):
                await client.score(ROWS, "exact_match")


async def test_a_stream_that_is_cut_while_it_is_written_is_tried_again() -> None:
    def cut(*_: Any) -> Any:
        raise aio.AioRpcError(
            grpc.StatusCode.INTERNAL, aio.Metadata(), aio.Metadata(), details="Internal error from Core"
        )

    upstream: Any = SimpleNamespace(stream=cut)
    with pytest.raises(ServerUnreachable, match="while items were sent") as caught:
        _ = [reply async for reply in UpstreamTransport(lambda: upstream, ()).stream(SCORE_STREAM, _nothing())]
    assert caught.value.may_pass


async def _nothing() -> AsyncIterator[scoring_pb2.ScoreStreamRequest]:
    yield scoring_pb2.ScoreStreamRequest()
