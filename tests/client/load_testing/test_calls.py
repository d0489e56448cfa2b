"""Connections of a client process to a server that has several processes behind one port, and its streams."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import grpc
import grpc.aio
import pytest
from tests.client.small_server import Fault, run_small_server

from gradewire._transport.endpoint import Endpoint
from gradewire.errors import ServerUnreachable
from gradewire.load_testing.calls import Connections
from gradewire.load_testing.stream_calls import StreamCaller
from gradewire_proto.conventions.metadata import PROCESS_KEY
from gradewire_proto.v1 import models_pb2, models_pb2_grpc, types_pb2


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


async def call_each(connections: Connections) -> None:
    for channel in connections.channels:
        await models_pb2_grpc.ModelsStub(channel).List(models_pb2.ListModelsRequest())


@pytest.mark.parametrize(("wanted", "of_each"), [(1, 1), (2, 1), (5, 3)])
async def test_each_process_of_a_server_has_as_many_connections(wanted: int, of_each: int) -> None:
    async with serving("0/2", "1/2") as (address, processes):
        connections = Connections(Endpoint(address), wanted)
        await connections.ready(60)
        for process in processes:
            process.calls = 0
        await call_each(connections)
        assert [process.calls for process in processes] == [of_each, of_each]
        await connections.close()


async def test_a_server_of_one_process_has_as_many_as_are_wanted_and_one_that_is_not_there_none() -> None:
    async with serving("") as (address, (process,)):
        connections = Connections(Endpoint(address), 3)
        await connections.ready(60)
        assert len(connections.channels) == process.calls == 3
        await connections.close()
    gone = Connections(Endpoint(address), 1)
    with pytest.raises(ServerUnreachable, match="does not answer within"):
        await gone.ready(0.3)
    await gone.close()


async def test_a_stream_that_has_ended_leaves_nothing_behind() -> None:
    with run_small_server() as server:
        server.script.faults = [Fault(grpc.StatusCode.RESOURCE_EXHAUSTED, pushback_ms=5, after_messages=1)]
        connections = Connections(Endpoint(server.address), 1)
        await connections.ready(60)
        caller = StreamCaller(connections, [types_pb2.MetricSpec(exact_match=types_pb2.ExactMatchParameters())], 30.0)
        item = types_pb2.Item(references=["a"], prediction="a")
        codes = [(await caller.call([item])).code for _ in range(2)]
        assert codes[1] == "OK" != codes[0]
        await caller.close()
        assert server.script.streams == 2
        # gRPC's own tasks end a moment later.
        assert not [task for task in asyncio.all_tasks() if "_Stream." in repr(task.get_coro())]
