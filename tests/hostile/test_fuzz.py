"""Whatever bytes come, a server answers them with a code and a message of ours, leaks nothing, and scores on."""

import logging
import sys
from collections import Counter
from pathlib import Path
from typing import Any, Final

import pytest
from benchmarks.load.frames import FramedConnection
from grpc import aio
from tests.hostile.callers import Answers, send_drawn
from tests.hostile.payloads import METHODS
from tests.support.figures import TakeFigure
from tests.support.servers.server_process import ServerProcess
from tests.support.servers.wire import EXACT, SMILE, item, request, wire_server

from gradewire_proto.v1 import models_pb2, models_pb2_grpc, scoring_pb2_grpc

_ROOT: Final = Path(__file__).resolve().parents[2]
_QUICK: Final = 1_000
_LONG: Final = 35_000
_SEEDS: Final = (1, 2, 3)


def holds(answers: Answers, count: int, name: str, figure: TakeFigure) -> None:
    """Asserts what must hold of many answers."""
    name = f"{count} payloads to {name}"
    assert figure(f"{name}: INTERNAL or UNKNOWN", len(answers.defects), bound="== 0").holds, answers.defects[:5]
    assert figure(f"{name}: answers with a path or a traceback", len(answers.leaks), bound="== 0").holds, answers.leaks[
        :5
    ]
    assert sum(answers.codes.values()) == count
    assert answers.codes["OK"] > count // 10
    assert answers.codes["INVALID_ARGUMENT"] > count // 10
    assert set(answers.methods) == set(METHODS)
    assert answers.most_details <= 1_000


async def scores(port: int) -> float:
    async with aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        stub: Any = scoring_pb2_grpc.ScoringStub(channel)
        reply = await stub.Score(request(item("the cat", "the cat"), metrics=(SMILE, EXACT)), timeout=30)
    assert reply.items[0].results[1].score == 1
    return float(reply.items[0].results[0].score)


async def attack_process(directory: Path, repository: Path, figure: TakeFigure, *, seed: int, count: int) -> None:
    """The default encoder, in a process of its own."""
    secrets = [str(directory), str(repository), str(_ROOT), sys.prefix]
    with ServerProcess(directory, model_repository=repository) as server:
        before = await scores(server.port)
        answers = await send_drawn(server.port, seed=seed, count=count, secrets=secrets)
        assert await scores(server.port) == pytest.approx(before, abs=2e-4)
        lines, text = server.log(), server.log_text()
    name = f"the default encoder, seed {seed}"
    holds(answers, count, name, figure)
    # Whatever wrote them, and to wherever: as a field of a record, in a message, or past the log to standard error.
    tracebacks = text.count("Traceback (most recent call last)") + sum("traceback" in line for line in lines)
    assert figure(f"{count} payloads to {name}: tracebacks in the log", tracebacks, bound="== 0").holds
    assert [line for line in lines if line.get("code") in {"INTERNAL", "UNKNOWN"}] == []
    assert max(len(str(line)) for line in lines) < 4_000


async def attack_engine(caplog: pytest.LogCaptureFixture, figure: TakeFigure, *, seed: int, count: int) -> None:
    """The hash engine, which has a judge."""
    async with wire_server() as wire:
        with caplog.at_level(logging.WARNING):
            answers = await send_drawn(wire.port, seed=seed, count=count, secrets=[str(_ROOT), sys.prefix])
        assert await scores(wire.port) > 0
        lines = await wire.log_lines()
    name = f"an engine with a judge, seed {seed}"
    holds(answers, count, name, figure)
    errors = [record for record in caplog.records if record.exc_info or record.levelno >= logging.ERROR]
    assert figure(f"{count} payloads to {name}: tracebacks in the log", len(errors), bound="== 0").holds, errors[:3]
    assert [line for line in lines if line["code"] in {"INTERNAL", "UNKNOWN"}] == []


def header(name: bytes, value: bytes) -> bytes:
    """As HTTP/2 carries one that is in no table."""
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


BROKEN_HEADERS: Final = (
    (b"x-a", b"\xff\xfe"), (b"authorization", b"Bearer secret\xff"), (b"x-request-id", b"\x80"), (b"x\xff", b"a"),
    (b"x-b-bin", b"!!!"), (b"X-Upper", b"a"), (b"x-a", b"\0"), (b"x-a", b"a\r\nb"), (b"", b"a"),
    (b"grpc-timeout", b"\xff"),
    (b"grpc-encoding", b"\xff"), (b"grpc-encoding", b"gzip"), (b"content-type", b"\xff"), (b"user-agent", b"\xff"),
    (b"te", b"x"), (b":path", b"/x"), (b":method", b"GET"), (b":unknown", b"x"), (b"host", b"\xff"),
)  # fmt: skip


@pytest.mark.hostile
async def test_headers_that_no_client_library_sends_are_no_defect(tmp_path: Path, figure: TakeFigure) -> None:
    with ServerProcess(tmp_path, default_model="", auth_tokens="secret") as server:
        codes: Counter[str] = Counter()
        for name, value in BROKEN_HEADERS:
            connection = await FramedConnection.open("/gradewire.v1.Models/List", server.address, deadline_s=5)
            connection._headers += header(name, value)
            codes[(await connection.call(b"")).code] += 1
            connection.close()
        async with aio.insecure_channel(server.address) as channel:
            stub: Any = models_pb2_grpc.ModelsStub(channel)
            await stub.List(models_pb2.ListModelsRequest(), metadata=(("authorization", "Bearer secret"),), timeout=30)
        lines, text = server.log(), server.log_text()
    assert codes["OK"] == 0, "none of them has the token"
    tracebacks = text.count("Traceback") + sum(line.get("code") in {"INTERNAL", "UNKNOWN"} for line in lines)
    name = f"{len(BROKEN_HEADERS)} broken headers"
    assert figure(f"{name}: tracebacks, INTERNAL or UNKNOWN in the log", tracebacks, bound="== 0").holds, text
    assert figure(f"{name}: tokens in the log", text.count("secret"), bound="== 0").holds


@pytest.mark.hostile  # in make test a thousand meet the engine with a judge
async def test_a_thousand_payloads_meet_the_default_encoder(tmp_path: Path, minilm: Path, figure: TakeFigure) -> None:
    await attack_process(tmp_path, minilm, figure, seed=0, count=_QUICK)


async def test_a_thousand_payloads_meet_an_engine_with_a_judge(
    caplog: pytest.LogCaptureFixture, figure: TakeFigure
) -> None:
    await attack_engine(caplog, figure, seed=0, count=_QUICK)


@pytest.mark.hostile
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", _SEEDS)
async def test_many_payloads_meet_the_default_encoder(
    tmp_path: Path, minilm: Path, seed: int, figure: TakeFigure
) -> None:
    await attack_process(tmp_path, minilm, figure, seed=seed, count=_LONG)


@pytest.mark.hostile
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", _SEEDS)
async def test_many_payloads_meet_an_engine_with_a_judge(
    caplog: pytest.LogCaptureFixture, seed: int, figure: TakeFigure
) -> None:
    await attack_engine(caplog, figure, seed=seed, count=_LONG)
