"""A client used before a fork raises in the child, at once; its parent, and what is spawned, go on as before."""

import asyncio
import multiprocessing
import subprocess
import sys
from collections.abc import Callable

import pytest
from tests.client.small_server import SmallServer

import gradewire
from gradewire import AsyncClient, Client, Pair

PAIR = Pair("q", "x", "y")
RIGHT = {"references": ["a"], "prediction": "a"}
FORK = multiprocessing.get_context("fork")
SPAWN = multiprocessing.get_context("spawn")


def scored(client: Client) -> float | None:
    return client.score([RIGHT])[0].scores["smile"].score


def told_in_child(work: Callable[[], object]) -> tuple[str, str]:
    """Class and message of what the work raises in a forked child."""
    ours, theirs = FORK.Pipe()

    def run() -> None:
        try:
            theirs.send(("nothing", repr(work())))
        except Exception as error:  # noqa: BLE001 - the parent looks at it
            theirs.send((type(error).__name__, str(error)))

    child = FORK.Process(target=run)
    child.start()
    assert ours.poll(30), "the child hangs"
    told: tuple[str, str] = ours.recv()
    child.join(20)
    assert child.exitcode == 0
    return told


@pytest.mark.parametrize(
    "call",
    [
        scored,
        lambda client: list(client.score_stream([RIGHT])),
        lambda client: client.submit([RIGHT]).result(20),
        lambda client: client.prepare([RIGHT]),
        lambda client: client.models(),
        lambda client: client.compare([PAIR]),
        lambda client: list(client.compare_stream([PAIR])),
    ],
)
def test_every_call_of_a_forked_child_says_what_to_do(
    small_server: SmallServer, call: Callable[[Client], object]
) -> None:
    with Client(small_server.address) as client:
        assert scored(client) == 1.0
        kind, said = told_in_child(lambda: call(client))
        assert (kind, "spawn or forkserver" in said) == ("ForkedClientError", True), said
        assert scored(client) == 1.0


def test_a_client_made_in_the_child_says_the_same(small_server: SmallServer) -> None:
    with Client(small_server.address) as client:
        scored(client)
        kind, said = told_in_child(lambda: scored(Client(small_server.address)))
    assert (kind, "after the fork" in said) == ("ForkedClientError", True), said


def test_an_async_client_says_so_too(small_server: SmallServer) -> None:
    client = AsyncClient(small_server.address)

    async def one() -> float | None:
        return (await client.score([RIGHT]))[0].scores["smile"].score

    with asyncio.Runner() as runner:
        assert runner.run(one()) == 1.0
        assert told_in_child(lambda: asyncio.run(one()))[0] == "ForkedClientError"
        assert runner.run(one()) == 1.0
        runner.run(client.close())


def test_it_is_an_error_of_ours() -> None:
    assert issubclass(gradewire.ForkedClientError, gradewire.GradewireError)


def test_a_client_sent_to_a_spawned_process_works(small_server: SmallServer) -> None:
    with Client(small_server.address, token="s3cret") as client, SPAWN.Pool(1) as pool:  # noqa: S106 - a test's own
        scored(client)
        assert pool.apply_async(scored, (client,)).get(60) == 1.0
    assert small_server.script.metadata[-1]["authorization"] == "Bearer s3cret"


def test_fifty_forks_in_a_row_with_a_client_at_work(small_server: SmallServer) -> None:
    program = (
        "import os, sys, threading, gradewire\n"
        "row = {'references': ['a'], 'prediction': 'a'}\n"
        "client = gradewire.Client(sys.argv[1], submit_limits=gradewire.SubmitLimits(max_pending_items=50))\n"
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
