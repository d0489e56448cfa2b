"""Every process that a test starts ends with the test, also where its time runs out.

A conftest imports the hooks. Without them a test that waits for a child hangs for good once its time is up, for
pytest-timeout interrupts a test once, and `with Popen(…)` goes on waiting.
"""

import os
import signal
import threading
import time
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_timeout

_AFTER_TIMEOUT_S: Final = 2.0
"""Time for a test to end its children by itself once its time is up."""
_ENDING_S: Final = 3.0
"""Time for processes that were told to end, and for what they started, to be gone."""
_HELPERS: Final = ("multiprocessing.resource_tracker", "multiprocessing.forkserver")
"""Processes of the standard library that serve this one until it ends."""


def hear_ctrl_c() -> None:
    """Gives SIGINT its usual action, which children inherit: a shell ignores it for what runs in its background."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def children() -> frozenset[int]:
    """Numbers of the processes that stem from this one and run."""
    found: set[int] = set()
    waiting = _started_by(os.getpid())
    while waiting:
        pid = waiting.pop()
        if pid not in found and _counts(pid):
            found.add(pid)
            waiting += _started_by(pid)
    return frozenset(found)


def _started_by(pid: int) -> list[int]:
    # A list of all processes of the machine, as psutil makes one, takes far longer, and this is asked thrice a test.
    return [int(child) for thread in Path(f"/proc/{pid}/task").glob("*/children") for child in _read(thread).split()]


def _counts(pid: int) -> bool:
    state = _read(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()[:1]
    return state not in ([], ["Z"]) and not any(name in _command(pid) for name in _HELPERS)


def _command(pid: int) -> str:
    return _read(Path(f"/proc/{pid}/cmdline")).replace("\0", " ")


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""


def end(pids: frozenset[int]) -> None:
    """Ends processes at once, and leaves the exit codes of direct children to who started them."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    give_up_s = time.monotonic() + _ENDING_S
    while any(map(_counts, pids)) and time.monotonic() < give_up_s:
        time.sleep(0.02)


def end_for_good(pids: frozenset[int]) -> None:
    """Ends processes that nobody waits for any more."""
    end(pids)
    for pid in pids:
        with suppress(ChildProcessError):  # a child of a child
            os.waitpid(pid, os.WNOHANG)


_STARTED_IN_SETUP: Final = pytest.StashKey[frozenset[int]]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, Any, Any]:
    result = yield
    # Among these may be servers that later tests share; what a fixture of this test started it ends itself.
    item.stash[_STARTED_IN_SETUP] = children()
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    limit_s = pytest_timeout._get_item_settings(item).timeout  # of the marker, the command line, the variable, the file
    if not limit_s:
        return (yield)
    before = item.stash[_STARTED_IN_SETUP]
    ended: list[int] = []

    def end_children() -> None:
        started = children() - before
        ended.extend(started)
        end(started)

    timer = threading.Timer(limit_s + _AFTER_TIMEOUT_S, end_children)
    timer.daemon = True
    timer.start()
    try:
        result = yield
    finally:
        timer.cancel()
    if ended:
        pytest.fail(f"the test ran on after its {limit_s:g} s, so its processes were ended: {ended}", pytrace=False)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, Any, Any]:
    result = yield
    if item.get_closest_marker("restarts"):
        return result
    known = item.stash.get(_STARTED_IN_SETUP, children())
    left = children() - known
    give_up_s = time.monotonic() + _ENDING_S
    while left and time.monotonic() < give_up_s:
        time.sleep(0.02)
        left = children() - known
    if left:
        said = "; ".join(f"{pid} {_command(pid)[:200]}" for pid in left)
        end_for_good(left)
        pytest.fail(f"the test left processes running: {said}", pytrace=False)
    return result


def pytest_sessionfinish(session: pytest.Session) -> None:
    if not hasattr(session.config, "workerinput") and session.config.getoption("numprocesses", None):
        return  # the children are pytest's own workers, which end theirs
    end_for_good(children())
