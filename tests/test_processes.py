"""What holds for every test: Ctrl-C reaches its children, they end with it, and what is drawn is drawn again."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil

ROOT = Path(__file__).parents[1]
CONFTEST = """
from tests.support.processes import (
    hear_ctrl_c, pytest_runtest_call, pytest_runtest_setup, pytest_runtest_teardown, pytest_sessionfinish,
)
hear_ctrl_c()
"""
TESTS = """
import contextlib, os, signal, subprocess, sys, time
from pathlib import Path
import pytest

SLEEPS = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(600)"]


def started():
    process = subprocess.Popen(SLEEPS, stdout=subprocess.PIPE)
    process.stdout.readline()
    with Path("pids").open("a") as pids:
        print(process.pid, file=pids)
    return process


def test_that_leaves_a_child():
    started()


@pytest.mark.timeout(1)
def test_that_waits_for_a_child():
    with started() as process:
        process.wait()


@pytest.mark.timeout(1)
def test_that_goes_on_after_its_time():
    with started() as process:
        deadline = time.monotonic() + 30
        while process.poll() is None and time.monotonic() < deadline:
            with contextlib.suppress(pytest.fail.Exception):
                time.sleep(0.1)
        Path("code").write_text(str(process.returncode))


def test_ctrl_c():
    with started() as process:
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == -signal.SIGINT


@pytest.fixture(scope="session")
def shared():
    return started()


def test_that_uses_a_shared_child(shared):
    assert shared.poll() is None


def test_that_uses_it_again(shared):
    assert shared.poll() is None
"""


def test_children_end_with_their_test_and_hear_ctrl_c_in_the_background(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_it.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\ntimeout = 60\n")
    # A shell ignores SIGINT for what it starts with "&".
    ignoring = "signal.signal(signal.SIGINT, signal.SIG_IGN)"
    background = f"import os, signal, sys; {ignoring}; os.execv(sys.argv[1], sys.argv[1:])"
    arguments = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "ignore", "-rA"]
    done = subprocess.run(
        [sys.executable, "-c", background, sys.executable, *arguments],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=90,
    )
    assert "ERROR test_it.py::test_that_leaves_a_child" in done.stdout
    assert "the test left processes running: " in done.stdout
    assert "FAILED test_it.py::test_that_waits_for_a_child" in done.stdout
    assert "FAILED test_it.py::test_that_goes_on_after_its_time" in done.stdout
    assert "the test ran on after its 1 s, so its processes were ended: " in done.stdout
    assert (tmp_path / "code").read_text() == str(-signal.SIGKILL)
    assert "2 failed, 4 passed, 1 error" in done.stdout, done.stdout
    pids = [int(line) for line in (tmp_path / "pids").read_text().split()]
    assert len(pids) == 5
    assert not any(map(psutil.pid_exists, pids))


def test_a_longer_time_on_the_command_line_holds_for_children_too(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "pytest.ini").write_text("[pytest]\ntimeout = 1\n")
    (tmp_path / "test_it.py").write_text(
        "import subprocess, sys\n"
        "def test_it():\n"
        "    program = 'import time; time.sleep(4); print(1)'\n"
        "    assert subprocess.run([sys.executable, '-c', program], capture_output=True).stdout\n"
    )
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--timeout=60"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        check=True,
        timeout=90,
    )


def test_what_is_drawn_is_drawn_again(tmp_path: Path) -> None:
    program = tmp_path / "test_drawn.py"
    program.write_text(
        "import json, pathlib\nfrom hypothesis import given, strategies as st\n"
        "drawn = []\n"
        "@given(st.text())\ndef test_it(text): drawn.append(text)\n"
        "def test_write(): pathlib.Path('drawn.json').write_text(json.dumps(drawn))\n"
    )
    configured = ["-c", str(ROOT / "pyproject.toml"), "--rootdir", str(tmp_path), "--confcutdir", str(ROOT)]
    runs = []
    for _ in range(2):
        subprocess.run(
            [
                sys.executable,
                "-m",
                "pytest",
                "-q",
                *configured,
                "-p",
                "tests.conftest",
                "-p",
                "no:cacheprovider",
                str(program),
            ],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            check=True,
            timeout=90,
        )
        runs.append(json.loads((tmp_path / "drawn.json").read_text()))
    assert runs[0] == runs[1]
    assert len(set(runs[0])) > 20
