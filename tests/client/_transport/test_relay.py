"""A client that was made and used before a fork works in the child, by whatever means the child was made."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.client.small_server import Fault, SmallServer
from tests.support.processes import children

import gradewire
from gradewire import AsyncClient, Client, Pair

PAIR = Pair("q", "x", "y")
RIGHT = {"references": ["a"], "prediction": "a"}
FORK = multiprocessing.get_context("fork")
SPAWN = multiprocessing.get_context("spawn")


def scored(client: Client) -> float | None:
    return client.score([RIGHT])[0].scores["smile"].score


_inherited: list[Client] = []


def scored_by_inherited(_: int) -> float | None:
    return scored(_inherited[0])


def in_child(work: Callable[[], object]) -> object:
    """What the work returns, or raises, in a forked child."""
    ours, theirs = FORK.Pipe()

    def run() -> None:
        try:
            theirs.send(work())
        except Exception as error:  # noqa: BLE001 - the parent looks at it
            theirs.send(error)

    child = FORK.Process(target=run)
    child.start()
    assert ours.poll(30), "the child hangs"
    result = ours.recv()
    child.join(20)
    assert child.exitcode == 0
    return result


def every_call(client: Client) -> list[object]:
    stream = list(client.score_stream(RIGHT for _ in range(600)))
    prepared = client.prepare([RIGHT])
    submitted = client.submit([RIGHT]).result(20)
    compared = [client.compare([PAIR])[0].winner, len(list(client.compare_stream(PAIR for _ in range(40))))]
    return [scored(client), len(stream), prepared.entries, client.models().server_version, len(submitted), *compared]


def test_every_call_works_in_a_forked_child_and_in_its_parent(small_server: SmallServer) -> None:
    with Client(small_server.address) as client:
        before = every_call(client)
        assert in_child(lambda: every_call(client)) == before
        assert every_call(client) == before


def test_a_child_of_a_child_works_as_well(small_server: SmallServer) -> None:
    with Client(small_server.address) as client:
        scored(client)
        assert in_child(lambda: [scored(client), in_child(lambda: scored(client)), scored(client)]) == [1.0] * 3


def test_errors_are_the_same_in_a_forked_child(small_server: SmallServer) -> None:
    import grpc  # noqa: PLC0415 - as the other tests' clients

    def overloaded() -> tuple[type[Exception], float | None]:
        try:
            client.score([RIGHT], deadline_s=0.5)
        except gradewire.Overloaded as error:
            return type(error), error.retry_after_s
        raise AssertionError("it was let in")

    with Client(small_server.address) as client:
        scored(client)
        small_server.script.faults = [Fault(grpc.StatusCode.RESOURCE_EXHAUSTED, "full", pushback_ms=60_000)] * 9
        assert in_child(overloaded) == (gradewire.Overloaded, 60.0)
        small_server.script.faults = [Fault(grpc.StatusCode.INVALID_ARGUMENT, "items[0] is wrong")]
        assert isinstance(in_child(lambda: scored(client)), gradewire.InvalidRequest)


def test_forked_loaders_score_while_the_parent_does(small_server: SmallServer) -> None:
    with Client(small_server.address, max_pending_items=50) as client:
        done = threading.Event()

        def keep_busy() -> None:
            while not done.is_set():
                client.submit([RIGHT])
                time.sleep(0.001)

        _inherited[:] = [client]
        scored(client)
        busy = threading.Thread(target=keep_busy)
        busy.start()
        try:
            with FORK.Pool(3) as pool:
                assert pool.map_async(scored_by_inherited, range(60), chunksize=1).get(60) == [1.0] * 60
        finally:
            done.set()
            busy.join(10)
            _inherited.clear()


def test_a_client_sent_to_a_spawned_process_works(small_server: SmallServer) -> None:
    with Client(small_server.address, token="s3cret") as client, SPAWN.Pool(1) as pool:  # noqa: S106 - a test's own
        scored(client)
        assert pool.apply_async(scored, (client,)).get(60) == 1.0
    assert small_server.script.metadata[-1]["authorization"] == "Bearer s3cret"


def test_an_async_client_works_in_a_forked_child(small_server: SmallServer) -> None:
    import asyncio  # noqa: PLC0415 - for its runner alone

    client = AsyncClient(small_server.address)

    async def one() -> float | None:
        return (await client.score([RIGHT]))[0].scores["smile"].score

    with asyncio.Runner() as runner:
        assert runner.run(one()) == 1.0
        assert in_child(lambda: asyncio.run(one())) == 1.0
        assert runner.run(one()) == 1.0
        runner.run(client.close())


def test_a_carrier_that_dies_is_replaced(small_server: SmallServer) -> None:
    def work() -> list[float | None]:
        first = scored(client)
        (carrier,) = children()
        os.kill(carrier, signal.SIGKILL)
        return [first, scored(client), scored(client)]

    with Client(small_server.address) as client:
        scored(client)
        assert in_child(work) == [1.0] * 3


def test_the_carrier_ends_with_its_process_however_that_ends(small_server: SmallServer) -> None:
    ours, theirs = FORK.Pipe()
    with Client(small_server.address) as client:
        scored(client)
        child = os.fork()
        if child == 0:
            scored(client)
            theirs.send(list(children()))
            os._exit(0)
        (carrier,) = ours.recv()
        os.waitpid(child, 0)
    give_up = time.monotonic() + 20
    while b"relay_process" in Path(f"/proc/{carrier}/cmdline").read_bytes() if _is_there(carrier) else False:
        assert time.monotonic() < give_up
        time.sleep(0.01)


def _is_there(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def test_without_a_way_to_start_a_process_the_ways_out_are_named(
    small_server: SmallServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Client(small_server.address) as client:
        scored(client)
        monkeypatch.setattr(sys, "executable", "/nowhere/python")
        error = in_child(lambda: scored(client))
    assert isinstance(error, gradewire.ForkedClient)
    assert "spawn or forkserver" in str(error)


def test_fifty_forks_in_a_row_with_a_client_at_work(small_server: SmallServer) -> None:
    program = (
        "import os, sys, threading, gradewire\n"
        "row = {'references': ['a'], 'prediction': 'a'}\n"
        "client = gradewire.Client(sys.argv[1], max_pending_items=50)\n"
        "client.score([row])\n"
        "done = threading.Event()\n"
        "def keep_busy():\n"
        "    while not done.wait(0.001):\n"
        "        client.submit([row])\n"
        "busy = threading.Thread(target=keep_busy)\n"
        "busy.start()\n"
        "children = []\n"
        "for _ in range(50):\n"
        "    child = os.fork()\n"
        "    if child == 0:\n"
        "        os._exit(0)\n"
        "    children.append(child)\n"
        "codes = {os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children}\n"
        "done.set()\n"
        "busy.join()\n"
        "client.close()\n"
        "print(codes)\n"
    )
    command = [sys.executable, "-c", program, small_server.address]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (ended.stdout, ended.stderr) == ("{0}\n", "")
