"""Steps in processes of their own: their rows are kept, their budgets hold, and nothing that they start is left."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Sequence
from pathlib import Path

import psutil
import pytest
from benchmarks.gpu import step_processes
from benchmarks.gpu.step_processes import descendants, run_apart

HEAD = """
import json, os, subprocess, sys, time
from pathlib import Path
from benchmarks.gpu.step_processes import NotRunError, exit_on_sigterm, report_rows
"""
# A server in a session of its own, whose parent ends, as a server's or vLLM's own processes can be.
ORPHAN = 'subprocess.Popen(["sh", "-c", "setsid sleep 600 & echo $! >" + sys.argv[1]]).wait()\n'


def command(step: str, *arguments: str) -> list[str]:
    """A program that runs `step`, the indented body of a generator."""
    body = HEAD + "def step():\n" + textwrap.indent(textwrap.dedent(step), "    ") + "\nreport_rows(step)\n"
    return [sys.executable, "-c", body, *arguments]


@pytest.fixture(autouse=True)
def _path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))


def is_running(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def wait_for(path: Path) -> str:
    give_up_s = time.monotonic() + 60
    while not (path.exists() and path.read_text().endswith("\n")):
        assert time.monotonic() < give_up_s, f"nobody wrote {path}"
        time.sleep(0.05)
    return path.read_text()


def wait_until_gone(pids: Sequence[int]) -> None:
    give_up_s = time.monotonic() + 60
    while any(map(is_running, pids)):
        assert time.monotonic() < give_up_s, "a process is left"
        time.sleep(0.05)


@pytest.mark.parametrize(
    ("step", "rows", "why"),
    [
        ("yield {'a': 1}\nyield {'a': 2.5}", [{"a": 1}, {"a": 2.5}], ""),
        ("yield {'a': 1}\nraise NotRunError('no GPU')", [{"a": 1}], "not run: no GPU"),
        ("yield {'a': 1}\nraise ValueError('torn\\nin two')", [{"a": 1}], "failed: ValueError: torn in two"),
        ("print('{\"row\": 1}')\nos.write(1, b'hello')\nyield {'a': 1}", [{"a": 1}], ""),
    ],
)
def test_rows_and_the_reason_come_back(step: str, rows: list[object], why: str, tmp_path: Path) -> None:
    outcome = run_apart(command(step), 60, tmp_path / "log")
    assert (outcome.rows, outcome.why) == (rows, why)
    assert outcome.seconds > 0


def test_a_process_that_dies_leaves_its_rows_and_its_last_words(tmp_path: Path) -> None:
    step = "yield {'a': 1}\nprint('bad address', file=sys.stderr, flush=True)\nos.abort()"
    outcome = run_apart(command(step), 60, tmp_path / "log")
    assert outcome.rows == [{"a": 1}]
    assert outcome.why == f"failed: the step's process ended with status -{int(signal.SIGABRT)}: bad address"


def test_a_step_over_its_budget_is_told_to_end_and_keeps_its_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(step_processes, "GRACE_S", 20.0)
    step = """
    exit_on_sigterm()
    try:
        yield {'a': 1}
        Path(sys.argv[1]).write_text("measured\\n")
        time.sleep(600)
    finally:
        Path(sys.argv[1]).write_text("servers are stopped\\n")
    """
    outcome = run_apart(command(step, str(tmp_path / "state")), 30, tmp_path / "log")
    assert outcome.rows == [{"a": 1}]
    assert outcome.why == "stopped: the budget of 30 s was used up"
    assert (tmp_path / "state").read_text() == "servers are stopped\n"


def test_a_step_that_does_not_end_is_killed_with_all_its_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(step_processes, "GRACE_S", 0.5)
    step = f"""
    import signal
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    {ORPHAN}
    yield {{'pid': os.getpid()}}
    time.sleep(600)
    """
    # This process is no subreaper, so the program between it and the step is one.
    program = (
        "import sys; from pathlib import Path; from benchmarks.gpu import step_processes as p\n"
        "p.GRACE_S = 0.5; p.adopt_orphans()\n"
        "o = p.run_apart(sys.argv[2:], 8, Path(sys.argv[1])); print(o.rows[0]['pid'], o.why); print(p.descendants())"
    )
    pid_file = tmp_path / "pid"
    run = [sys.executable, "-c", program, str(tmp_path / "log"), *command(step, str(pid_file))]
    done = subprocess.run(run, capture_output=True, text=True, check=True)
    first, left = done.stdout.splitlines()
    pid, _, why = first.partition(" ")
    assert (why, left) == ("stopped: the budget of 8 s was used up", "set()")
    assert not is_running(int(pid))
    assert not is_running(int(wait_for(pid_file)))


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_ended_ends_its_step_and_what_it_started(sent: signal.Signals, tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from benchmarks.gpu import step_processes as p\n"
        "p.adopt_orphans(); p.exit_on_sigterm()\n"
        "p.run_apart(sys.argv[2:], 500, Path(sys.argv[1]))"
    )
    step = f"""
    exit_on_sigterm()
    {ORPHAN}
    yield {{'pid': os.getpid()}}
    Path(sys.argv[2]).write_text(str(os.getpid()) + "\\n")
    time.sleep(600)
    """
    files = [tmp_path / "orphan", tmp_path / "step"]
    command_line = [sys.executable, "-c", program, str(tmp_path / "log"), *command(step, *map(str, files))]
    with subprocess.Popen(command_line, stderr=subprocess.DEVNULL) as run:
        pids = [int(wait_for(file)) for file in files]
        assert all(map(is_running, pids))
        run.send_signal(sent)
        assert run.wait(60) != 0
    wait_until_gone(pids)


def test_a_step_ends_with_a_run_that_is_killed(tmp_path: Path) -> None:
    program = (
        "import os, sys; from pathlib import Path; from benchmarks.gpu import step_processes as p\n"
        "p.run_apart([*sys.argv[2:], str(os.getpid())], 500, Path(sys.argv[1]))"
    )
    step = """
    from benchmarks.gpu.step_processes import end_with_parent
    exit_on_sigterm()
    end_with_parent(int(sys.argv[2]))
    try:
        Path(sys.argv[1]).write_text(str(os.getpid()) + "\\n")
        time.sleep(600)
    finally:
        Path(sys.argv[1] + ".end").write_text("in order\\n")
    yield {}
    """
    file = tmp_path / "step"
    command_line = [sys.executable, "-c", program, str(tmp_path / "log"), *command(step, str(file))]
    with subprocess.Popen(command_line) as run:
        pid = int(wait_for(file))
        run.kill()
        run.wait(60)
        wait_until_gone([pid])
    assert wait_for(tmp_path / "step.end") == "in order\n"


def test_a_step_whose_run_has_already_ended_does_not_start() -> None:
    step = "from benchmarks.gpu.step_processes import end_with_parent\nend_with_parent(1)\nyield {'a': 1}"
    done = subprocess.run(command(step), capture_output=True, text=True, check=False)
    assert done.returncode == 128 + signal.SIGTERM
    assert done.stdout == ""


def test_descendants_are_all_processes_below_and_no_zombies() -> None:
    shell = ["sh", "-c", "sleep 600 & echo $!; exec sleep 600"]
    with subprocess.Popen(shell, stdout=subprocess.PIPE, text=True) as top:
        assert top.stdout is not None
        below = int(top.stdout.readline())
        assert {top.pid, below} <= descendants()
        os.kill(below, signal.SIGKILL)
        wait_until_gone([below])
        assert below not in descendants()
        top.kill()
    assert top.pid not in descendants()


def test_messages_are_json_lines() -> None:
    done = subprocess.run(command("yield {'é': 1}"), capture_output=True, check=True)
    assert [json.loads(line) for line in done.stdout.splitlines()] == [{"row": {"é": 1}}, {"why": ""}]
