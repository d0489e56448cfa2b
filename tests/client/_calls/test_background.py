"""What happens around a client: forks, the end of the program, interrupts. Each in a process of its own."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from multiprocessing.connection import Connection

import pytest
from tests.client.small_server import SmallServer

from gradewire import Client, SubmitLimits
from gradewire.testing import StubTransport, echo_scores

RIGHT = {"references": ["a"], "prediction": "a"}
FORK = multiprocessing.get_context("fork")


def stub() -> StubTransport:
    return StubTransport(lambda request: echo_scores(request, score=lambda item: float(item.prediction == "a")))


def in_child(client: Client, answer: Connection) -> None:
    try:
        answer.send(client.score([RIGHT])[0].scores["smile"].score)
    except Exception as error:  # noqa: BLE001 - the parent looks at it
        answer.send(error)


def scored_in_child(client: Client) -> object:
    ours, theirs = FORK.Pipe()
    child = FORK.Process(target=in_child, args=(client, theirs))
    child.start()
    assert ours.poll(20), "the child hangs"
    result = ours.recv()
    child.join(20)
    assert child.exitcode == 0
    return result


def test_a_forked_child_gets_a_loop_of_its_own() -> None:
    with Client(transport=stub()) as client:
        client.score([RIGHT])
        assert scored_in_child(client) == 1.0
        assert client.score([RIGHT])[0].scores["smile"].score == 1.0


def test_a_fork_while_the_client_is_being_used_leaves_no_lock_behind() -> None:
    with Client(transport=stub(), submit_limits=SubmitLimits(max_pending_items=50)) as client:
        done = threading.Event()

        def keep_busy() -> None:
            while not done.is_set():
                client.submit([RIGHT])

        busy = threading.Thread(target=keep_busy)
        busy.start()
        try:
            assert [scored_in_child(client) for _ in range(3)] == [1.0] * 3
        finally:
            done.set()
            busy.join(10)


def run(program: str, address: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program, address], capture_output=True, text=True, check=False, timeout=60
    )


def test_a_client_that_the_parent_only_made_works_in_a_forked_child(small_server: SmallServer) -> None:
    ended = run(
        "import os, sys, gradewire\n"
        "client = gradewire.Client(sys.argv[1])\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    print(client.score([{'references': ['a'], 'prediction': 'a'}])[0].scores['smile'].score, flush=True)\n"
        "    client.close()\n"
        "    os._exit(0)\n"
        "assert os.waitpid(child, 0)[1] == 0\n"
        "print(client.score([{'references': ['a'], 'prediction': 'a'}])[0].scores['smile'].score)\n",
        small_server.address,
    )
    assert ended.stdout.split() == ["1.0", "1.0"], ended.stderr


def test_a_forked_child_may_drop_what_it_inherited(small_server: SmallServer) -> None:
    ended = run(
        "import gc, os, sys, gradewire\n"
        "client = gradewire.Client(sys.argv[1])\n"
        "client.score([{'references': ['a'], 'prediction': 'a'}])\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    del client\n"
        "    gc.collect()\n"
        "    sys.exit(3)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n",
        small_server.address,
    )
    assert ended.stdout.split() == ["3"], ended.stderr


def test_the_end_of_the_program_waits_for_what_was_submitted(small_server: SmallServer) -> None:
    ended = run(
        "import sys, gradewire\n"
        "client = gradewire.Client(sys.argv[1])\n"
        "for index in range(30):\n"
        "    client.submit([{'references': ['a'], 'prediction': 'a'}], callback=lambda f: print(len(f.result())))\n",
        small_server.address,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.split() == ["1"] * 30


def test_a_client_that_nobody_closed_ends_quietly(small_server: SmallServer) -> None:
    ended = run(
        "import sys, gradewire\n"
        "print(len(gradewire.Client(sys.argv[1]).score([{'references': ['a'], 'prediction': 'a'}])))\n"
        "client = gradewire.Client(sys.argv[1])\n"
        "stream = client.score_stream({'references': ['a'], 'prediction': 'a'} for _ in range(1000))\n"
        "print(next(stream).index >= 0)\n",
        small_server.address,
    )
    assert (ended.returncode, ended.stdout.split(), ended.stderr) == (0, ["1", "True"], "")


def test_a_client_may_be_dropped_by_its_own_callback(small_server: SmallServer) -> None:
    clients = [Client(small_server.address)]
    future = clients[0].submit([RIGHT])
    future.add_done_callback(lambda _: clients.clear())
    assert len(future.result(10)) == 1


@pytest.mark.parametrize(
    "call",
    [
        "client.score([{'references': ['a'], 'prediction': 'a'}], deadline_s=50)",
        "list(client.score_stream([{'references': ['a'], 'prediction': 'a'}], deadline_s=50))",
        "client.prepare([{'references': ['a']}])",
    ],
)
def test_ctrl_c_ends_a_waiting_call(small_server: SmallServer, call: str) -> None:
    small_server.script.hold.clear()
    program = (
        "import sys, gradewire\n"
        "client = gradewire.Client(sys.argv[1])\n"
        "print('waiting', flush=True)\n"
        "try:\n"
        f"    {call}\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted', flush=True)\n"
    )
    command = [sys.executable, "-c", program, small_server.address]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "waiting\n"
        while not small_server.script.metadata:
            threading.Event().wait(0.01)
        os.kill(process.pid, signal.SIGINT)
        assert process.stdout.readline() == "interrupted\n"
        assert process.wait(20) == 0
        assert process.stderr is not None
        assert process.stderr.read() == ""


def test_it_refuses_to_wait_on_its_own_thread() -> None:
    with Client(transport=stub()) as client, pytest.raises(RuntimeError, match="must not wait"):
        client.score([RIGHT], progress=lambda *_: client.flush())
