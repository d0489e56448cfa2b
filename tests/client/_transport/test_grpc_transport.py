"""Calls of the transport before anything answers."""

from collections.abc import AsyncIterator

from gradewire._transport.grpc_transport import GrpcTransport
from gradewire_proto.v1 import references_pb2, scoring_pb2


async def no_requests() -> AsyncIterator[scoring_pb2.ScoreStreamRequest]:
    for request in ():
        yield request


def test_a_stream_starts_when_its_first_reply_is_asked_for() -> None:
    # No event loop runs here, and to start a call takes one.
    transport = GrpcTransport("127.0.0.1:1")
    assert transport.prepare(references_pb2.PrepareRequest(), timeout_s=1)
    assert transport.score_stream(no_requests(), timeout_s=1)
