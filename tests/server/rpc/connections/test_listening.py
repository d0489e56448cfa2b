"""A process that stops listening keeps the connections that it has."""

import socket

import pytest
from grpc import aio
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from gradewire_server.rpc.connections.listening import listening_sockets, stop_listening


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
