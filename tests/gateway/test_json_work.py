"""Large JSON is processed beside the event loop, and the child process is replaced if it is lost."""

import asyncio
import json
import os
import pickle
import signal
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gradewire_gateway.json_work import Json
from gradewire_gateway.problems import ProblemError
from gradewire_gateway.wire import Buffer, read_object
from gradewire_proto.v1 import judging_pb2

REQUEST = judging_pb2.CompareRequest(
    pairs=[judging_pb2.Pair(id=str(number), question="é" * 40) for number in range(9999)]
)
ROOT = Path(__file__).resolve().parents[2]
LARGE = json.dumps({"prediction": "x" * 200_000}).encode()


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> Iterator[Json]:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))  # the process imports this module
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
    written = await reader.write("a", REQUEST.SerializeToString(), judging_pb2.CompareRequest, held.append)
    assert held == [REQUEST.ByteSize()]
    assert len(written) > 1 << 20
    assert await reader.read("a", written, judging_pb2.CompareRequest) == REQUEST.SerializeToString()


async def test_only_large_bodies_go_to_the_process_which_stays(reader: Json) -> None:
    assert await reader.convert("a", b"{}", pid_of) == pid_of(b"")
    first, second = [await reader.convert("a", LARGE, pid_of) for _ in range(2)]
    assert first == second != pid_of(b"")


async def test_a_process_that_is_lost_is_replaced(reader: Json, tmp_path: Path) -> None:
    assert await reader.convert("a", LARGE, partial(die_once, mark=tmp_path / "mark")) == b"alive"


async def test_a_body_that_kills_the_process_twice_is_a_problem(reader: Json) -> None:
    with pytest.raises(ProblemError) as caught:
        await reader.convert("a", LARGE, die)
    assert (caught.value.problem.status, caught.value.problem.code) == (503, "unavailable")
    assert await reader.convert("a", LARGE, pid_of)


async def test_problems_and_defects_come_back_from_the_process(reader: Json) -> None:
    with pytest.raises(ProblemError, match="is not JSON"):
        await reader.convert("a", LARGE, refuse)
    with pytest.raises(RuntimeError, match="on purpose"):
        await reader.convert("a", LARGE, fail)


def niceness(_data: Buffer) -> bytes:
    return str(os.nice(0)).encode()


def wait_for(_data: Buffer, mark: Path) -> bytes:
    while not mark.exists():
        time.sleep(0.01)
    return b""


async def test_the_process_yields_to_others_and_ignores_ctrl_c(reader: Json) -> None:
    pid = int(await reader.convert("a", LARGE, pid_of))
    assert int(await reader.convert("a", LARGE, niceness)) == min(19, os.nice(0) + 5)
    os.kill(pid, signal.SIGINT)
    assert int(await reader.convert("a", LARGE, pid_of)) == pid


async def test_the_process_imports_nothing_from_the_working_directory(
    reader: Json, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "secrets.py").write_text("raise SystemExit")
    monkeypatch.chdir(tmp_path)
    assert await reader.convert("a", LARGE, pid_of)


async def test_an_error_between_request_and_reply_leaves_no_reply_for_the_next_body(
    reader: Json, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patched:
        patched.setattr(pickle, "load", fail)
        with pytest.raises(MemoryError):
            await reader.convert("a", LARGE, pid_of)
    assert await reader.convert("a", LARGE, niceness) == str(min(19, os.nice(0) + 5)).encode()


async def test_callers_take_turns_and_those_with_a_token_wait_for_one_other(reader: Json, tmp_path: Path) -> None:
    order: list[str] = []

    async def convert(name: str, caller: object, work: Any = pid_of) -> None:
        await reader.convert(caller, LARGE, work)
        order.append(name)

    first = asyncio.ensure_future(convert("first", ("1.1.1.1", False), partial(wait_for, mark=tmp_path / "mark")))
    await asyncio.sleep(0.5)
    others = [convert(f"{host} {turn}", (f"2.2.2.{host}", False)) for host in range(3) for turn in range(2)]
    waiting = [asyncio.ensure_future(each) for each in others]
    await asyncio.sleep(0.1)
    token = asyncio.ensure_future(convert("token", "Bearer right"))
    gone = asyncio.ensure_future(convert("gone", "Bearer other"))
    await asyncio.sleep(0.1)
    gone.cancel()
    (tmp_path / "mark").touch()
    await asyncio.gather(first, token, *waiting)
    assert order[0] == "first"
    assert order.index("token") <= 2
    assert "gone" not in order
    assert max(order.index(f"{host} 0") for host in range(3)) < min(order.index(f"{host} 1") for host in range(3))


async def test_a_closed_reader_ends_its_process_and_what_it_works_on(reader: Json) -> None:
    pid = int(await reader.convert("a", LARGE, pid_of))
    waiting = asyncio.ensure_future(reader.convert("a", LARGE, partial(sleep, for_s=60)))
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
