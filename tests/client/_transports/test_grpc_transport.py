"""Calls of the transport before anything answers, and what it says of an address that cannot be right."""

import asyncio
from collections.abc import AsyncIterator

import grpc
import pytest
from tests.client.small_server import Fault, SmallServer

from gradewire import Client, InvalidRequest, ServerUnreachable, Tls
from gradewire._transports.connection_pool import ServerConnection
from gradewire._transports.grpc_transport import GrpcTransport, open_channel
from gradewire.errors import Overloaded
from gradewire.transport import PREPARE, SCORE, SCORE_STREAM, Endpoint, Q, R, RpcMethod
from gradewire_proto.v1 import references_pb2, scoring_pb2, types_pb2

RIGHT = {"references": ["a"], "prediction": "a"}


async def no_requests() -> AsyncIterator[scoring_pb2.ScoreStreamRequest]:
    for request in ():
        yield request


def test_a_stream_starts_when_its_first_reply_is_asked_for() -> None:
    # No event loop runs here, and to start a call takes one.
    transport = GrpcTransport(Endpoint("127.0.0.1:1"))
    assert transport.stream(PREPARE, references_pb2.PrepareRequest(), timeout_s=1)
    assert transport.stream(SCORE_STREAM, no_requests(), timeout_s=1)


def test_tls_to_a_server_without_it_is_said_at_once(small_server: SmallServer) -> None:
    with Client(small_server.address, tls=Tls()) as client, pytest.raises(ServerUnreachable) as caught:
        client.score([RIGHT])
    assert not caught.value.may_pass
    assert "Tried" not in str(caught.value)


def test_a_host_that_does_not_exist_is_said_at_once() -> None:
    with Client("no-such-host.invalid:50051") as client, pytest.raises(ServerUnreachable) as caught:
        client.models()
    assert not caught.value.may_pass
    assert "Tried" not in str(caught.value)


def test_a_server_that_has_answered_before_is_waited_for_whatever_is_at_its_address(small_server: SmallServer) -> None:
    with Client(small_server.address) as client:
        client.score([RIGHT])
        # What a balancer may say, or a name server, while the server behind it starts again.
        small_server.script.faults = [Fault(grpc.StatusCode.UNAVAILABLE, "Domain name not found", pushback_ms=1)] * 3
        assert client.score([RIGHT])[0].scores["smile"].score == 1.0


def test_a_message_that_grpc_refuses_is_not_sent_again(small_server: SmallServer) -> None:
    details = "SERVER: Received message larger than max (5000000 vs. 4194304)"
    small_server.script.faults = [Fault(grpc.StatusCode.RESOURCE_EXHAUSTED, details)] * 2
    with Client(small_server.address) as client, pytest.raises(InvalidRequest, match="larger than max"):
        client.score([RIGHT])
    assert len(small_server.script.requests) == 1


def test_a_connection_to_a_process_that_stops_gets_no_further_calls(small_server: SmallServer) -> None:
    script = small_server.script
    with Client(small_server.address) as client:
        script.trailing = (("gradewire-process", "0/2"),)
        client.score([RIGHT])
        client.score([RIGHT])
        assert len(set(script.peers)) == 1, "one connection does for calls in a row"
        script.trailing = (("gradewire-process", "0/2"), ("gradewire-stopping", "1"))
        client.score([RIGHT])
        assert len(set(script.peers)) == 1
        script.trailing = (("gradewire-process", "1/2"),)
        client.score([RIGHT])
        assert len(set(script.peers)) == 2
        assert len(list(client.score_stream([RIGHT]))) == 1
        assert len(set(script.peers)) == 2


@pytest.mark.parametrize(("more", "connections"), [((), 1), ((("gradewire-stopping", "1"),), 2)])
def test_a_refusal_moves_calls_where_the_process_stops(
    small_server: SmallServer, more: tuple[tuple[str, str], ...], connections: int
) -> None:
    script = small_server.script
    script.trailing = (("gradewire-process", "0/2"), *more)
    script.faults = [Fault(grpc.StatusCode.UNAVAILABLE, "not now")]
    with Client(small_server.address) as client:
        client.score([RIGHT])
        assert len(set(script.peers)) == connections


async def test_a_call_that_one_process_has_no_room_for_is_made_again_to_another_one_once(
    small_server: SmallServer,
) -> None:
    transport = GrpcTransport(Endpoint(small_server.address))
    first = transport._connection()
    second = ServerConnection(open_channel(transport._endpoint))
    transport._pool.connections = [first, second]
    for index, connection in enumerate((first, second)):
        connection.process, connection.process_known = f"{index}/2", True
    request = scoring_pb2.ScoreRequest(
        items=[types_pb2.Item(references=["a"], prediction="a")],
        metrics=[types_pb2.MetricSpec(exact_match=types_pb2.ExactMatchParameters())],
    )
    refusal = Fault(grpc.StatusCode.RESOURCE_EXHAUSTED, "come back later", pushback_ms=60_000)
    small_server.script.faults = [refusal]
    assert len((await transport.unary(SCORE, request, timeout_s=5)).items) == 1
    assert len(small_server.script.requests) == 2
    small_server.script.faults = [refusal, refusal]
    with pytest.raises(Overloaded) as caught:
        await transport.unary(SCORE, request, timeout_s=5)
    assert caught.value.retry_after_s == 60
    assert len(small_server.script.requests) == 3, "the other one has refused a call, too"
    await transport.close()


async def test_a_call_that_is_over_its_quota_is_not_made_again_to_another_process(small_server: SmallServer) -> None:
    transport = GrpcTransport(Endpoint(small_server.address))
    first = transport._connection()
    transport._pool.connections = [first, ServerConnection(open_channel(transport._endpoint))]
    for index, connection in enumerate(transport._pool.connections):
        connection.process, connection.process_known = f"{index}/2", True
    small_server.script.trailing = (("gradewire-quota", "1"),)
    small_server.script.faults = [Fault(grpc.StatusCode.RESOURCE_EXHAUSTED, "the quota is used up", pushback_ms=60_000)]
    request = scoring_pb2.ScoreRequest(
        items=[types_pb2.Item(references=["a"], prediction="a")],
        metrics=[types_pb2.MetricSpec(exact_match=types_pb2.ExactMatchParameters())],
    )
    with pytest.raises(Overloaded) as caught:
        await transport.unary(SCORE, request, timeout_s=5)
    assert caught.value.of_quota
    assert not any(each.refused_until_s for each in transport._pool.connections), "other callers' calls may go there"
    await transport.close()


async def test_a_call_that_is_made_again_to_another_process_has_no_more_time_than_before(
    small_server: SmallServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    transport = GrpcTransport(Endpoint(small_server.address))
    times_s: list[float] = []
    send = transport._reply

    async def first_late(connection: ServerConnection, method: RpcMethod[Q, R], request: Q, left_s: float) -> R:
        times_s.append(left_s)
        if len(times_s) == 1:
            connection.process = "0/2"
            transport._pool.connections.append(ServerConnection(open_channel(transport._endpoint), process="1/2"))
            await asyncio.sleep(0.2)
            raise Overloaded("come back later", retry_after_s=60)
        return await send(connection, method, request, left_s)

    monkeypatch.setattr(transport, "_reply", first_late)
    await transport.unary(SCORE, scoring_pb2.ScoreRequest(), timeout_s=5)
    assert times_s[0] == 5
    assert times_s[1] <= 4.8
    await transport.close()


def test_a_refusal_of_a_process_that_stops_ends_its_connection_too(small_server: SmallServer) -> None:
    script = small_server.script
    script.trailing = (("gradewire-process", "0/2"), ("gradewire-stopping", "1"))
    script.faults = [Fault(grpc.StatusCode.RESOURCE_EXHAUSTED, "come back later", pushback_ms=1)]
    with Client(small_server.address) as client:
        client.score([RIGHT])
        assert len(set(script.peers)) == 2


@pytest.mark.parametrize(
    ("address", "hint"),
    [
        ("http://127.0.0.1:8080", "such as '127.0.0.1:8080'$"),
        ("https://scores.example/v1", r"such as 'scores\.example', and tls=gradewire\.Tls\(\) for TLS$"),
    ],
)
def test_an_address_with_a_scheme_of_http_is_refused_at_once(address: str, hint: str) -> None:
    with pytest.raises(InvalidRequest, match=f"has a scheme: give HOST:PORT of the server's gRPC port, {hint}"):
        Endpoint(address)


def test_a_list_of_addresses_needs_its_scheme() -> None:
    with pytest.raises(InvalidRequest, match="names several servers: give ipv4:IP:PORT,IP:PORT"):
        Endpoint("127.0.0.1:1,127.0.0.1:2")


@pytest.mark.parametrize("address", ["dns:///scores.example:50051", "unix:///run/scores", "[::1]:50051"])
def test_names_that_grpc_resolves_are_addresses(address: str) -> None:
    assert Endpoint(address).address == address
