"""Health and reflection answer bytes that are no request, and watchers do not hang on each other."""

import asyncio
import contextlib
import logging

import grpc
import pytest
from grpc import aio
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.examples import example_count
from tests.support.servers.wire import error_of, wire_server

_HEALTH = "/grpc.health.v1.Health"
_REFLECTION = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
_BROKEN = b"\xff\xff\xff"
_SERVING, _NOT_SERVING = health_pb2.HealthCheckResponse.SERVING, health_pb2.HealthCheckResponse.NOT_SERVING


async def test_what_cannot_be_parsed_is_an_invalid_argument_in_one_line(caplog: pytest.LogCaptureFixture) -> None:
    async with wire_server() as wire:
        with caplog.at_level(logging.WARNING):
            with pytest.raises(aio.AioRpcError) as unary:
                await wire.channel.unary_unary(f"{_HEALTH}/Check")(_BROKEN)
            with pytest.raises(aio.AioRpcError) as watched:
                await wire.channel.unary_stream(f"{_HEALTH}/Watch")(_BROKEN).read()
            with pytest.raises(aio.AioRpcError) as reflected:
                await wire.channel.stream_stream(_REFLECTION)(iter([_BROKEN])).read()
        for error in (unary, watched, reflected):
            code, details, _ = error_of(error)
            assert code is grpc.StatusCode.INVALID_ARGUMENT
            assert details.startswith("message: is not a valid request for grpc.")
        assert [record.name for record in caplog.records] == ["gradewire_server.rpc.health"] * 3
        assert not any(record.exc_info for record in caplog.records)


async def test_a_message_that_is_too_long_is_refused_and_not_kept() -> None:
    name = "n" * 5000
    watch = health_pb2.HealthCheckRequest(service=name)
    symbol = reflection_pb2.ServerReflectionRequest(file_containing_symbol=name)
    async with wire_server() as wire:
        health = health_pb2_grpc.HealthStub(wire.channel)
        reflected = reflection_pb2_grpc.ServerReflectionStub(wire.channel)  # type: ignore[no-untyped-call]
        for call in (health.Watch(watch), reflected.ServerReflectionInfo(iter([symbol]))):
            with pytest.raises(aio.AioRpcError) as caught:
                await asyncio.wait_for(call.read(), 5)
            code, details, _ = error_of(caught)
            assert code is grpc.StatusCode.INVALID_ARGUMENT
            assert details.startswith("message: has 500")
            assert "at most 4096 are allowed" in details


@given(st.binary(max_size=40))
@settings(max_examples=example_count(20), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_bytes_are_an_error_of_ours(data: bytes) -> None:
    async def codes() -> set[grpc.StatusCode]:
        async with wire_server() as wire:
            stream = wire.channel.stream_stream(_REFLECTION)(iter([data]))
            with contextlib.suppress(aio.AioRpcError):
                async for _ in stream:
                    pass
            return {await wire.channel.unary_unary(f"{_HEALTH}/Check")(data).code(), await stream.code()}

    assert asyncio.run(codes()) <= {
        grpc.StatusCode.OK,
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.NOT_FOUND,
    }


async def test_reflection_lists_all_services() -> None:
    async with wire_server() as wire:
        stub = reflection_pb2_grpc.ServerReflectionStub(wire.channel)  # type: ignore[no-untyped-call]
        call = stub.ServerReflectionInfo(iter([reflection_pb2.ServerReflectionRequest(list_services="")]))
        names = {service.name async for reply in call for service in reply.list_services_response.service}
        assert {"gradewire.v1.Scoring", "grpc.health.v1.Health"} <= names


async def test_a_watcher_that_leaves_takes_nothing_from_the_others() -> None:
    async with wire_server(serving=False) as wire:
        stub = health_pb2_grpc.HealthStub(wire.channel)
        asked = health_pb2.HealthCheckRequest(service="")
        first, second = stub.Watch(asked), stub.Watch(asked)
        assert (await first.read()).status == (await second.read()).status == _NOT_SERVING
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first.read()
        await asyncio.sleep(0.1)  # the server hears of it
        wire.lifecycle.serving(wire.handlers)
        assert (await asyncio.wait_for(second.read(), 5)).status == _SERVING
        wire.lifecycle.draining()
        assert (await asyncio.wait_for(second.read(), 5)).status == _NOT_SERVING


async def test_an_unknown_service_is_not_found_and_can_be_watched() -> None:
    async with wire_server() as wire:
        stub = health_pb2_grpc.HealthStub(wire.channel)
        with pytest.raises(aio.AioRpcError) as caught:
            await stub.Check(health_pb2.HealthCheckRequest(service="none"))
        assert error_of(caught)[0] is grpc.StatusCode.NOT_FOUND
        reply = await stub.Watch(health_pb2.HealthCheckRequest(service="none")).read()
        assert reply.status == health_pb2.HealthCheckResponse.SERVICE_UNKNOWN
