"""Start and end of a whole server, in the test's own process."""

import asyncio
import gc
import socket
import time
from pathlib import Path
from typing import Any

import pytest
from grpc import aio
from tests.support.servers.in_process import serving
from tests.support.servers.wire import EXACT, item, request

from gradewire_proto.v1 import scoring_pb2, scoring_pb2_grpc, types_pb2
from gradewire_server import memory
from gradewire_server.app import serve
from gradewire_server.process import Stop
from gradewire_server.settings.server import Settings

CONFIG = scoring_pb2.ScoreStreamRequest(config=scoring_pb2.ScoreStreamConfig(metrics=[EXACT]))


@pytest.fixture
def settings(tmp_path: Path) -> dict[str, Any]:
    """No model is needed for what these tests are about."""
    return {"model_repository": tmp_path / "none"}


async def test_a_stream_that_outlasts_the_grace_is_cut(tmp_path: Path, settings: dict[str, Any]) -> None:
    async with (
        serving(tmp_path, grace_s=0.3, **settings) as (port, stop),
        aio.insecure_channel(f"127.0.0.1:{port}") as channel,
    ):
        stream = scoring_pb2_grpc.ScoringStub(channel).ScoreStream()
        await stream.write(CONFIG)
        assert (await stream.read()).provenance
        began = time.monotonic()
        stop.request()
        with pytest.raises(aio.AioRpcError):
            await stream.read()
        assert time.monotonic() - began > 0.25, "not before the grace is over"


async def test_cancelling_ends_it_at_once_and_frees_the_port(tmp_path: Path, settings: dict[str, Any]) -> None:
    port: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    given = Settings.load(port=0, http_port=0, disk_directory=tmp_path / "store", drain_s=60, **settings)
    running = asyncio.create_task(serve(given, started=port.set_result))
    async with aio.insecure_channel(f"127.0.0.1:{await port}") as channel:
        stream = scoring_pb2_grpc.ScoringStub(channel).ScoreStream()
        await stream.write(CONFIG)
        assert (await stream.read()).provenance
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(running, timeout=20)
    with socket.create_server(("127.0.0.1", port.result())):
        pass


async def test_it_can_be_started_again_on_the_same_store(tmp_path: Path, settings: dict[str, Any]) -> None:
    for _ in range(2):
        async with (
            serving(tmp_path, **settings) as (port, _stop),
            aio.insecure_channel(f"127.0.0.1:{port}") as channel,
        ):
            reply = await scoring_pb2_grpc.ScoringStub(channel).Score(request(item(), metrics=(EXACT,)))
            assert reply.items[0].results[0].status == types_pb2.STATUS_OK


async def test_garbage_is_looked_for_while_no_call_is_in_flight(
    tmp_path: Path, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "_COLLECT_EVERY_S", 0.02)
    looked: list[int] = []

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "stop" and info["generation"] == 2:
            looked.append(1)

    gc.callbacks.append(note)
    try:
        async with (
            serving(tmp_path, **settings) as (port, _stop),
            aio.insecure_channel(f"127.0.0.1:{port}") as channel,
        ):
            async with asyncio.timeout(20):
                while len(looked) < 3:  # noqa: ASYNC110 - nothing else tells
                    await asyncio.sleep(0.02)
            stream = scoring_pb2_grpc.ScoringStub(channel).ScoreStream()
            await stream.write(CONFIG)
            assert (await stream.read()).provenance
            before = len(looked)
            await asyncio.sleep(0.3)
            assert len(looked) == before, "a stream is open"
            await stream.done_writing()
            async with asyncio.timeout(20):
                while len(looked) == before:  # noqa: ASYNC110 - nothing else tells
                    await asyncio.sleep(0.02)
    finally:
        gc.callbacks.remove(note)


@pytest.mark.parametrize("setting", ["port", "http_port"])
async def test_a_taken_port_is_an_error(tmp_path: Path, settings: dict[str, Any], setting: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(OSError, match=r"in use|cannot listen"):
        async with serving(tmp_path, **settings, **{setting: taken.getsockname()[1]}):
            pass


async def test_a_certificate_that_cannot_be_read_is_an_error(tmp_path: Path, settings: dict[str, Any]) -> None:
    with pytest.raises(OSError, match=r"absent\.pem"):
        async with serving(tmp_path, tls_cert=tmp_path / "absent.pem", tls_key=tmp_path / "absent.pem", **settings):
            pass


async def test_a_stop_before_it_serves_is_obeyed(tmp_path: Path, settings: dict[str, Any]) -> None:
    stop = Stop()
    stop.request()
    given = Settings.load(port=0, http_port="", disk_directory=tmp_path / "store", **settings)
    started: list[int] = []
    await asyncio.wait_for(serve(given, started=started.append, stop=stop), timeout=20)
    assert started == []
