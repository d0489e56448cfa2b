"""What holds for every test: Ctrl-C reaches its children, they end with it, and what is drawn is drawn again."""

import json
import os
import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import example_count

ROOT = Path(__file__).parents[1]
DRAWN: list[tuple[str, int]] = []
CONFTEST = """
from tests.support.processes import (
    hear_ctrl_c, pytest_runtest_call, pytest_runtest_setup, pytest_runtest_teardown, pytest_sessionfinish,
    pytest_timeout_set_timer,
)
hear_ctrl_c()
"""
TESTS = """
import os, signal, subprocess, sys, time
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


@pytest.mark.timeout(3)
def test_that_waits_for_a_child():
    with started() as process:
        process.wait()


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


LONGER_THAN_THE_SETTING = """
import subprocess, sys
import pytest

{marker}
def test_that_waits_for_a_child():
    assert subprocess.call([sys.executable, "-c", "import sys, time; time.sleep(3); sys.exit(7)"]) == 7
"""
GOES_ON = """
import subprocess, sys
from contextlib import suppress
from pathlib import Path
import pytest

pytestmark = pytest.mark.timeout(timeout=1)
SLEEPS = [sys.executable, "-c", "import time; time.sleep(600)"]


def waits_on(name):
    process = None
    while not Path(name).exists():
        with suppress(pytest.fail.Exception):
            process = process or subprocess.Popen(SLEEPS)
            Path(name).write_text(str(process.wait()))


def test_that_passes():
    waits_on("passes")


def test_that_is_skipped():
    waits_on("skipped")
    pytest.skip("too slow a machine")


def test_that_raises():
    waits_on("raises")
    raise RuntimeError("what the test said of it")
"""


def inner_pytest(
    folder: Path, tests: str, *arguments: str, limit_s: float, before: str = "pass", **variables: str
) -> "subprocess.CompletedProcess[str]":
    """Runs tests under the hooks, with `limit_s` as the setting, after the statements `before` in the same process."""
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_it.py").write_text(tests)
    (folder / "pytest.ini").write_text(f"[pytest]\ntimeout = {limit_s}\n")
    starts = f"import os, signal, sys; {before}; os.execv(sys.argv[1], sys.argv[1:])"
    run = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "ignore", "-rA", *arguments]
    inherited = {name: value for name, value in os.environ.items() if name not in {"PYTEST_TIMEOUT", "PYTEST_ADDOPTS"}}
    return subprocess.run(
        [sys.executable, "-c", starts, *run],
        cwd=folder,
        env={**inherited, "PYTHONPATH": str(ROOT), **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=90,
    )


def runs(pid: int) -> bool:
    """Whether a process has not ended; who started it may not have asked yet how it did."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.hostile
def test_children_end_with_their_test_and_hear_ctrl_c_in_the_background(tmp_path: Path) -> None:
    # A shell ignores SIGINT for what it starts with "&".
    done = inner_pytest(tmp_path, TESTS, limit_s=60, before="signal.signal(signal.SIGINT, signal.SIG_IGN)")
    assert "ERROR test_it.py::test_that_leaves_a_child" in done.stdout
    assert "the test left processes running: " in done.stdout
    assert "FAILED test_it.py::test_that_waits_for_a_child" in done.stdout
    assert "4 passed, 1 failed, 1 error" in done.stdout or "1 failed, 4 passed, 1 error" in done.stdout, done.stdout
    pids = [int(line) for line in (tmp_path / "pids").read_text().split()]
    assert len(pids) == 4
    assert not any(map(runs, pids))


@pytest.mark.hostile
def test_a_child_may_run_for_as_long_as_pytest_timeout_lets_its_test(tmp_path: Path) -> None:
    def run(case: tuple[int, list[str], dict[str, str], str]) -> str:
        number, arguments, variables, marker = case
        folder = tmp_path / str(number)
        folder.mkdir()
        tests = LONGER_THAN_THE_SETTING.format(marker=marker)
        return inner_pytest(folder, tests, *arguments, limit_s=0.1, **variables).stdout

    cases: list[tuple[int, list[str], dict[str, str], str]] = [
        (0, ["--timeout=60"], {}, ""),
        (1, [], {"PYTEST_TIMEOUT": "60"}, ""),
        (2, [], {}, "@pytest.mark.timeout(timeout=60)"),
        (3, [], {}, "@pytest.mark.timeout(timeout=60, func_only=True)"),
        (4, ["--timeout=0"], {}, ""),
    ]
    # At the same time: each of them waits for seconds.
    with ThreadPoolExecutor(len(cases)) as pool:
        for case, printed in zip(cases, pool.map(run, cases), strict=True):
            assert "1 passed" in printed, (case, printed)


@pytest.mark.hostile
def test_a_test_whose_child_was_killed_fails_whatever_it_makes_of_it(tmp_path: Path) -> None:
    done = inner_pytest(tmp_path, GOES_ON, limit_s=10)
    assert "3 failed in" in done.stdout, done.stdout
    assert done.stdout.count("Failed: the test went on for 2 s after its time was up: its processes were ended") >= 3
    assert "RuntimeError: what the test said of it" in done.stdout
    # The test sees that its child was killed: nobody else waited for it.
    assert [(tmp_path / name).read_text() for name in ("passes", "skipped", "raises")] == [str(-signal.SIGKILL)] * 3


def draw(folder: Path, tests: str, *arguments: str) -> None:
    """Runs tests under the project's own configuration and hooks; they have to pass."""
    (folder / "test_drawn.py").write_text(tests)
    configured = ["-c", str(ROOT / "pyproject.toml"), "--rootdir", str(folder), "--confcutdir", str(ROOT)]
    ours = ["-p", "tests.conftest", "-p", "no:cacheprovider"]
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *configured, *ours, *arguments, "test_drawn.py"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        check=True,
        timeout=90,
    )


@settings()
@given(st.text(max_size=30), st.data())
def drawn(text: str, data: st.DataObject) -> None:
    """What a property test draws here is left in DRAWN."""
    DRAWN.append((text, data.draw(st.integers())))


@settings(max_examples=example_count(6))
@given(st.integers())
def drawn_at_least_five_times(number: int) -> None:
    DRAWN.append(("", number))


def test_what_is_drawn_is_drawn_again_as_often_as_a_test_says() -> None:
    runs = []
    for property_test in (drawn, drawn, drawn_at_least_five_times):
        DRAWN.clear()
        property_test()
        runs.append(DRAWN.copy())
    assert runs[0] == runs[1]
    assert len(set(runs[0])) > 20
    assert [len(run) for run in runs] == [40, 40, 5]
    assert settings.get_profile("search").max_examples == 1000
    assert not settings.get_profile("search").derandomize


@pytest.mark.hostile
def test_what_is_drawn_is_drawn_again_by_another_process(tmp_path: Path) -> None:
    tests = (
        "import json, pathlib\nfrom hypothesis import given, strategies as st\n"
        "drawn = []\n"
        "@given(st.text())\ndef test_it(text): drawn.append(text)\n"
        "def test_write(): pathlib.Path('drawn.json').write_text(json.dumps(drawn))\n"
    )
    runs = []
    for _ in range(2):
        draw(tmp_path, tests)
        runs.append(json.loads((tmp_path / "drawn.json").read_text()))
    assert runs[0] == runs[1]
    assert len(set(runs[0])) > 20


@pytest.mark.hostile
def test_a_search_draws_far_more_also_where_a_test_says_how_much(tmp_path: Path) -> None:
    tests = (
        "import pathlib\nfrom hypothesis import given, settings, strategies as st\n"
        "from tests.support.examples import example_count\n"
        "def count(name):\n    with pathlib.Path(name).open('a') as file: file.write('.')\n"
        "@given(st.integers())\ndef test_that_says_nothing(_): count('nothing')\n"
        "@settings(max_examples=example_count(6))\n@given(st.integers())\ndef test_that_says_6(_): count('6')\n"
    )
    counts = []
    # The last is how `make test-search` runs them: a worker has to have loaded the profile before it imports the tests.
    for arguments in ([], ["--hypothesis-profile=search", "--hypothesis-seed=1", "-n", "2"]):
        draw(tmp_path, tests, *arguments)
        counts.append([len((tmp_path / name).read_text()) for name in ("nothing", "6")])
        for name in ("nothing", "6"):
            (tmp_path / name).unlink()
    assert counts == [[40, 5], [1000, 60]]


def test_no_test_says_how_many_examples_it_draws_whatever_the_profile() -> None:
    fixed = [
        f"{path.relative_to(ROOT)}: {said}"
        for path in (ROOT / "tests").rglob("test_*.py")
        for said in re.findall(r"max_examples=\d+", path.read_text())
    ]
    assert not fixed, "example_count(…) draws more of them in `make test-search`"
