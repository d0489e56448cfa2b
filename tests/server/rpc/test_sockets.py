import resource
import socket
import sys

import pytest
from grpc import aio
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from gradewire_server.rpc.sockets import (
    Sockets,
    bind_error,
    end_connection,
    listening_sockets,
    most_connections,
    raise_descriptor_limit,
    stop_listening,
)


def test_a_port_that_is_taken_is_named_with_the_flag_that_changes_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = str(bind_error(f"127.0.0.1:{port}", "http-port"))
    assert said == (
        f"cannot listen on 127.0.0.1:{port}: another program listens on port {port}; stop that program, or choose "
        "another port with --http-port"
    )


@pytest.mark.parametrize(
    ("address", "part"),
    [
        ("192.0.2.1:50051", "192.0.2.1 is not an address of this machine"),
        ("no.such.host.invalid:50051", "no.such.host.invalid is not a known name or address"),
    ],
)
def test_other_reasons_are_told(address: str, part: str) -> None:
    assert part in str(bind_error(address, "port"))


def test_the_limit_is_raised_as_far_as_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    set_to: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, 4096))
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: set_to.append(limits))
    raise_descriptor_limit()
    assert set_to == [(4096, 4096)]


def test_a_system_that_refuses_leaves_it_with_a_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: object) -> None:
        raise ValueError("not allowed")

    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, resource.RLIM_INFINITY))
    monkeypatch.setattr(resource, "setrlimit", refuse)
    raise_descriptor_limit()
    assert "the limit remains 256" in caplog.text


@pytest.mark.parametrize(("descriptors", "most"), [(256, 128), (4096, 1000), (resource.RLIM_INFINITY, 1000)])
def test_connections_leave_descriptors_for_others(monkeypatch: pytest.MonkeyPatch, descriptors: int, most: int) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (descriptors, descriptors))
    assert most_connections(1000) == most


async def test_connections_stay_and_new_ones_are_refused() -> None:
    server = aio.server(options=[("grpc.so_reuseport", 1)])
    health_pb2_grpc.add_HealthServicer_to_server(health.aio.HealthServicer(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    assert list(listening_sockets(port))
    async with aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        check = health_pb2_grpc.HealthStub(channel).Check
        request = health_pb2.HealthCheckRequest()
        before = await check(request, timeout=10)
        stop_listening(port)
        assert not list(listening_sockets(port))
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), 5)
        assert await check(request, timeout=10) == before
        stop_listening(port)
    await server.stop(None)


@pytest.mark.skipif(sys.platform != "linux", reason="what was not read is thrown away on Linux alone")
@pytest.mark.parametrize("by_port", [True, False])
def test_what_was_not_read_of_a_connection_is_thrown_away_with_it(by_port: bool) -> None:  # noqa: FBT001 - a case
    with socket.create_server(("127.0.0.1", 0)) as server:
        peer = socket.create_connection(server.getsockname())
        ours, _ = server.accept()
        with peer, ours:
            peer.sendall(b"x" * 10_000)
            assert ours.recv(1) == b"x"
            if by_port:
                sockets = Sockets(server.getsockname()[1])
                ((name, received),) = sockets.received(1).items()
                assert name == f"ipv4:127.0.0.1:{peer.getsockname()[1]}"
                assert received.size_bytes == 10_000
                assert not sockets.cut(name, 10**6), "closed meanwhile"
                assert not sockets.cut("ipv4:127.0.0.1:1", received.descriptor), "another connection has its number now"
                assert sockets.cut(name, received.descriptor)
            else:
                end_connection(ours.fileno())
            with pytest.raises(ConnectionResetError):
                ours.recv(1)
            with pytest.raises(ConnectionResetError):
                peer.recv(1)
