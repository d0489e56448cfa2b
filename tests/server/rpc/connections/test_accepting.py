"""Calls of a method are taken in side by side, and with a version of gRPC that cannot, one after the other."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

import grpc
import pytest
from grpc import aio
from grpc._cython import cygrpc  # type: ignore[attr-defined] # no types, and no public name

from gradewire_server.rpc.connections import accepting

_METHOD = "/test.Service/Echo"


async def _echo(requests: AsyncIterator[bytes], context: aio.ServicerContext[bytes, bytes]) -> bytes:
    async for request in requests:
        if request == b"refuse":
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "come back later")
        return request
    return b"nothing"


@asynccontextmanager
async def served() -> AsyncGenerator[aio.Channel]:
    server = accepting.open_server(interceptors=(), options=())
    accepting.register(server, "test.Service", {"Echo": grpc.stream_unary_rpc_method_handler(_echo)})
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        async with aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            yield channel
    finally:
        await server.stop(None)


async def _check_calls() -> None:
    async with served() as channel:
        echo = channel.unary_unary(_METHOD)
        texts = [f"text {number}".encode() for number in range(200)]
        assert await asyncio.gather(*(echo(text) for text in texts)) == texts
        with pytest.raises(grpc.RpcError) as refused:
            await echo(b"refuse")
        assert isinstance(refused.value, aio.AioRpcError)
        assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        with pytest.raises(grpc.RpcError) as unknown:
            await channel.unary_unary("/test.Service/Other")(b"")
        assert isinstance(unknown.value, aio.AioRpcError)
        assert unknown.value.code() is grpc.StatusCode.UNIMPLEMENTED


async def test_every_call_gets_its_own_reply_whichever_slot_took_it_in() -> None:
    await _check_calls()


async def test_several_calls_are_asked_for_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bytes] = []
    request_call = accepting._Accepting._request_registered_call

    async def note(self: accepting._Accepting, method: bytes) -> object:
        asked.append(method)
        return await request_call(self, method)

    monkeypatch.setattr(accepting._Accepting, "_request_registered_call", note)
    async with served():
        await asyncio.sleep(0)  # the server's loop asks when it runs first
    assert len(asked) == accepting.SLOTS
    assert {method.partition(b"#")[0] for method in asked} == {_METHOD.encode()}


async def test_a_version_of_grpc_with_other_names_takes_them_in_one_at_a_time(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Unknown:
        """Has none of the names."""

    monkeypatch.setattr(accepting, "cygrpc", type("cygrpc", (), {"AioServer": Unknown}))
    assert hasattr(cygrpc.AioServer, "_request_registered_call"), "the version that is installed has them"
    await _check_calls()
    assert "one at a time" in caplog.text
