"""Connections of a client process to a server that has several processes behind one port."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import grpc.aio
import pytest

from gradewire.errors import ServerUnreachable
from gradewire.transport import Endpoint
from gradewire_cli.bench.load.calls import CONNECTIONS, LoadCaller
from gradewire_proto.v1 import models_pb2, models_pb2_grpc
from gradewire_proto.wire_rules import PROCESS_KEY


class Process(models_pb2_grpc.ModelsServicer):
    """Says which of several processes it is, and counts its calls."""

    def __init__(self, place: str) -> None:
        self.place = place
        self.calls = 0

    async def List(  # noqa: N802 - gRPC's name of the method
        self, request: models_pb2.ListModelsRequest, context: grpc.aio.ServicerContext
    ) -> models_pb2.ListModelsResponse:
        del request
        self.calls += 1
        if self.place:
            context.set_trailing_metadata(((PROCESS_KEY, self.place),))
        return models_pb2.ListModelsResponse()


@asynccontextmanager
async def serving(*places: str) -> AsyncIterator[tuple[str, list[Process]]]:
    """Servers that share a port, as processes of one do."""
    processes = [Process(place) for place in places]
    servers, port = [], 0
    for process in processes:
        server = grpc.aio.server(options=[("grpc.so_reuseport", 1)])
        models_pb2_grpc.add_ModelsServicer_to_server(process, server)
        port = server.add_insecure_port(f"127.0.0.1:{port}")
        await server.start()
        servers.append(server)
    try:
        yield f"127.0.0.1:{port}", processes
    finally:
        for server in servers:
            await server.stop(None)


async def calls_of(address: str, processes: list[Process]) -> list[int]:
    """Calls that each process gets if one is made over each connection."""
    caller = LoadCaller(Endpoint(address), [], 5.0)
    channels = await caller.connect(60)
    for process in processes:
        process.calls = 0
    for channel in channels:
        await models_pb2_grpc.ModelsStub(channel).List(models_pb2.ListModelsRequest())
    await caller.close()
    return [process.calls for process in processes]


async def test_each_process_of_a_server_has_as_many_connections() -> None:
    async with serving("0/2", "1/2") as (address, processes):
        assert await calls_of(address, processes) == [CONNECTIONS, CONNECTIONS]


async def test_a_server_that_is_not_there_any_more_is_told_by_its_address() -> None:
    async with serving("") as (address, processes):
        assert await calls_of(address, processes) == [CONNECTIONS]
    gone = LoadCaller(Endpoint(address), [], 5.0)
    with pytest.raises(ServerUnreachable, match="did not answer within"):
        await gone.connect(0.3)
    await gone.close()
