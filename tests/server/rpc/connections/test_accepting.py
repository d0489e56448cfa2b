"""Calls of a method are taken in side by side, and with a version of gRPC that cannot, one after the other."""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from importlib.util import module_from_spec
from typing import Any

import grpc
import pytest
from grpc import aio
from grpc._cython import cygrpc  # type: ignore[attr-defined] # no types, and no public name

from gradewire_server.rpc.connections import accepting

_METHOD = "/test.Service/Echo"
servers: list[Any] = []


async def _echo(requests: AsyncIterator[bytes], context: aio.ServicerContext[bytes, bytes]) -> bytes:
    async for request in requests:
        if request == b"refuse":
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "come back later")
        return request
    return b"nothing"


@asynccontextmanager
async def served(handle: Callable[..., Awaitable[bytes]] = _echo) -> AsyncGenerator[aio.Channel]:
    server = accepting.open_server(interceptors=(), options=())
    servers.append(server)
    accepting.register(server, "test.Service", {"Echo": grpc.stream_unary_rpc_method_handler(handle)})
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


async def test_every_call_gets_its_own_reply_whichever_taker_took_it_in() -> None:
    await _check_calls()


async def test_several_calls_are_begun_side_by_side_and_know_what_they_have_waited() -> None:
    began: list[float | None] = []
    all_began = asyncio.Event()

    async def wait(_: AsyncIterator[bytes], _context: aio.ServicerContext[bytes, bytes]) -> bytes:
        began.append(accepting.waited_s(time.perf_counter()))
        if len(began) == 2 * accepting.TAKERS:
            all_began.set()
        await all_began.wait()
        return b"done"

    async with served(wait) as channel:
        calls = [channel.unary_unary(_METHOD)(b"") for _ in range(2 * accepting.TAKERS)]
        assert await asyncio.gather(*calls) == [b"done"] * len(calls)
    assert all(waited_s is not None and waited_s >= 0 for waited_s in began)
    assert accepting.waited_s(0) is None, "this is no call"


async def test_takers_are_added_while_rounds_are_long_and_end_when_they_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accepting, "_LONG_S", -1.0)  # every round counts as long

    async def echo(requests: AsyncIterator[bytes], _context: aio.ServicerContext[bytes, bytes]) -> bytes:
        accepting.waited_s(time.perf_counter())
        return await anext(requests)

    async with served(echo) as channel:
        call = channel.unary_unary(_METHOD)
        takers = servers[-1]._server._takers
        assert takers == {_METHOD: accepting.TAKERS}
        assert await asyncio.gather(*(call(b"a") for _ in range(50))) == [b"a"] * 50
        assert takers == {_METHOD: accepting.MOST_TAKERS}
        monkeypatch.setattr(accepting, "_LONG_S", 1e9)
        monkeypatch.setattr(accepting, "_IDLE_S", -1.0)  # and every taker as one that has waited for long
        for _ in range(2 * accepting.MOST_TAKERS):
            await call(b"a")
        assert takers == {_METHOD: accepting.TAKERS}


async def test_a_call_that_is_open_when_the_server_stops_is_ended() -> None:
    started = asyncio.Event()

    async def never(_: AsyncIterator[bytes], _context: aio.ServicerContext[bytes, bytes]) -> bytes:
        started.set()
        await asyncio.get_running_loop().create_future()
        raise AssertionError

    async with served(never) as channel:
        call = channel.unary_unary(_METHOD)(b"")
        await started.wait()
    with pytest.raises((grpc.RpcError, asyncio.CancelledError)):
        await call


async def test_a_version_of_grpc_with_other_names_takes_them_in_one_at_a_time(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Unknown:
        """Has none of the names."""

    assert accepting._is_known(), "the version that is installed has them"
    monkeypatch.setattr(accepting, "_Core", Unknown)
    await _check_calls()
    assert "one at a time" in caplog.text


async def test_a_version_that_makes_servers_in_another_way_takes_them_in_one_at_a_time(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def other(*_: object) -> None:
        raise TypeError("one more argument is needed")

    monkeypatch.setattr(accepting, "_Accepting", other)
    await _check_calls()
    assert "one more argument is needed" in caplog.text
    assert "one at a time" in caplog.text


def test_it_can_be_imported_where_grpc_has_none_of_the_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(aio._server, "Server")  # type: ignore[attr-defined]
    monkeypatch.delattr(cygrpc, "AioServer")
    assert accepting.__spec__ is not None
    assert accepting.__spec__.loader is not None
    other = module_from_spec(accepting.__spec__)
    accepting.__spec__.loader.exec_module(other)
    assert not other._is_known()
