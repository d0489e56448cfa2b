"""Large JSON is processed beside the event loop, and the child process is replaced if it is lost."""

import asyncio
import json
import os
import signal
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from gradewire_gateway.json_work import Json
from gradewire_gateway.problems import ProblemError
from gradewire_gateway.wire import Buffer, read_object
from gradewire_proto.v1 import judging_pb2

REQUEST = judging_pb2.CompareRequest(
    pairs=[judging_pb2.Pair(id=str(number), question="é" * 40) for number in range(9999)]
)
LARGE = json.dumps({"prediction": "x" * 200_000}).encode()


@pytest.fixture
def reader() -> Iterator[Json]:
    reader = Json()
    yield reader
    reader.close()


def pid_of(_data: Buffer) -> bytes:
    return str(os.getpid()).encode()


def die(_data: Buffer) -> bytes:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


def die_once(_data: Buffer, mark: Path) -> bytes:
    if mark.exists():
        return b"alive"
    mark.touch()
    return die(_data)


def refuse(data: Buffer) -> bytes:
    read_object(data[1:])
    raise AssertionError


def fail(_data: Buffer) -> bytes:
    raise ZeroDivisionError("on purpose")


async def test_large_messages_are_read_and_written_in_the_process(reader: Json) -> None:
    held: list[int] = []
    written = await reader.write(REQUEST.SerializeToString(), judging_pb2.CompareRequest, held.append)
    assert held == [REQUEST.ByteSize()]
    assert len(written) > 1 << 20
    assert await reader.read(written, judging_pb2.CompareRequest) == REQUEST.SerializeToString()


async def test_only_large_bodies_go_to_the_process_which_stays(reader: Json) -> None:
    assert await reader.convert(b"{}", pid_of) == pid_of(b"")
    first, second = [await reader.convert(LARGE, pid_of) for _ in range(2)]
    assert first == second != pid_of(b"")


async def test_a_process_that_is_lost_is_replaced(reader: Json, tmp_path: Path) -> None:
    assert await reader.convert(LARGE, partial(die_once, mark=tmp_path / "mark")) == b"alive"


async def test_a_body_that_kills_the_process_twice_is_a_problem(reader: Json) -> None:
    with pytest.raises(ProblemError) as caught:
        await reader.convert(LARGE, die)
    assert (caught.value.problem.status, caught.value.problem.code) == (503, "unavailable")
    assert await reader.convert(LARGE, pid_of)


async def test_problems_and_defects_come_back_from_the_process(reader: Json) -> None:
    with pytest.raises(ProblemError, match="is not JSON"):
        await reader.convert(LARGE, refuse)
    with pytest.raises(RuntimeError, match="on purpose"):
        await reader.convert(LARGE, fail)


async def test_a_closed_reader_ends_its_process_and_what_it_works_on(reader: Json) -> None:
    pid = int(await reader.convert(LARGE, pid_of))
    waiting = asyncio.ensure_future(reader.convert(LARGE, partial(sleep, for_s=60)))
    await asyncio.sleep(0.1)
    await asyncio.to_thread(reader.close)
    with pytest.raises(ProblemError, match="stopping"):
        await waiting
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def sleep(_data: Buffer, for_s: float) -> bytes:
    threading.Event().wait(for_s)
    return b""


@pytest.mark.parametrize(("characters", "on_loop"), [(1_000, True), (200_000, False)])
async def test_large_bodies_are_read_beside_the_event_loop(reader: Json, characters: int, on_loop: bool) -> None:  # noqa: FBT001 - a column
    data = json.dumps({"prediction": "x" * characters}).encode()
    thread = await reader.made_of(data, lambda _: threading.current_thread())
    read = await reader.made_of(data, read_object)
    assert (thread is threading.current_thread()) is on_loop
    assert len(read["prediction"]) == characters
