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
from typing import Any, Final, Protocol

import pytest
from tests.support.servers.forked_process import FORK_SERVER

_AFTER_TIMEOUT_S: Final = 2.0
"""Time for a test to end its children by itself once its time is up."""
_ENDING_S: Final = 3.0
"""Time for processes that were told to end, and for what they started, to be gone."""
_KILLING_S: Final = 10.0
"""Time for processes to be gone that were killed."""
_HELPERS: Final = ("multiprocessing.resource_tracker", "multiprocessing.forkserver", FORK_SERVER)
"""Processes that serve this one until it ends."""


def hear_ctrl_c() -> None:
    """Gives SIGINT its usual action, which children inherit: a shell ignores it for what runs in its background."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def children() -> frozenset[int]:
    """Numbers of the processes that stem from this one and run."""
    found: set[int] = set()
    waiting = _started_by(os.getpid()) if _has_children() else []
    while waiting:
        pid = waiting.pop()
        if pid in found:
            continue
        if _counts(pid):
            found.add(pid)
        elif FORK_SERVER not in _command(pid):
            continue
        waiting += _started_by(pid)
    return frozenset(found)


def _has_children() -> bool:
    # Most tests have none, and one call of the kernel says so; what follows looks at every thread of this process.
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _started_by(pid: int) -> list[int]:
    # A list of all processes of the machine, as psutil makes one, takes far longer, and this is asked twice a test.
    tasks = f"/proc/{pid}/task"
    try:
        threads = os.listdir(tasks)  # noqa: PTH208 - as _read
    except (FileNotFoundError, ProcessLookupError):
        return []
    return [int(child) for thread in threads for child in _read(f"{tasks}/{thread}/children").split()]


def _counts(pid: int) -> bool:
    return _runs(pid) and not any(name in _command(pid) for name in _HELPERS)


def _runs(pid: int) -> bool:
    return _read(f"/proc/{pid}/stat").rpartition(")")[2].split()[:1] not in ([], ["Z"])


def _command(pid: int) -> str:
    return _read(f"/proc/{pid}/cmdline").replace("\0", " ")


def _read(path: str) -> str:
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - a Path takes thrice as long, for every thread of every server
            return file.read().decode(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""


def end(pids: frozenset[int]) -> None:
    """Ends processes at once, and leaves to the test how they ended.

    Nobody waits for them here: a `Popen` whose child somebody else waited for says that it ended well.
    """
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    give_up_s = time.monotonic() + _KILLING_S
    while any(map(_runs, pids)) and time.monotonic() < give_up_s:
        time.sleep(0.02)


_STARTED_IN_SETUP: Final = pytest.StashKey[frozenset[int]]()
_TIME_IS_UP_S: Final = pytest.StashKey[float]()
"""When pytest-timeout interrupts the test, on the monotonic clock; absent where nothing limits it."""


class _Limit(Protocol):
    """What pytest-timeout made of its marker, its option, its variable and its setting."""

    timeout: float


@pytest.hookimpl(wrapper=True, optionalhook=True)
def pytest_timeout_set_timer(item: pytest.Item, settings: _Limit) -> Generator[None, Any, Any]:
    item.stash[_TIME_IS_UP_S] = time.monotonic() + settings.timeout
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, Any, Any]:
    result = yield
    # Among these may be servers that later tests share; what a fixture of this test started it ends itself.
    item.stash[_STARTED_IN_SETUP] = children()
    return result


@pytest.hookimpl(wrapper=True, trylast=True)  # pytest-timeout may set its timer in this hook as well
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    if _TIME_IS_UP_S not in item.stash:
        return (yield)
    before = item.stash[_STARTED_IN_SETUP]
    fired = threading.Event()

    def fire() -> None:
        fired.set()
        end(children() - before)

    timer = threading.Timer(item.stash[_TIME_IS_UP_S] + _AFTER_TIMEOUT_S - time.monotonic(), fire)
    timer.daemon = True
    timer.start()
    try:
        return (yield)
    finally:
        timer.cancel()
        timer.join()
        if fired.is_set():
            # Whatever the test made of it: a child that was killed shows nothing. What it raised is shown above this.
            pytest.fail(f"the test went on for {_AFTER_TIMEOUT_S:g} s after its time was up: its processes were ended")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, Any, Any]:
    result = yield
    if item.get_closest_marker("restarts"):
        return result
    left = children()
    known = item.stash.get(_STARTED_IN_SETUP, left)
    left -= known
    give_up_s = time.monotonic() + _ENDING_S
    while left and time.monotonic() < give_up_s:
        time.sleep(0.02)
        left = children() - known
    if left:
        said = "; ".join(f"{pid} {_command(pid)[:200]}" for pid in left)
        end(left)
        pytest.fail(f"the test left processes running: {said}", pytrace=False)
    return result


def pytest_sessionfinish(session: pytest.Session) -> None:
    if not hasattr(session.config, "workerinput") and session.config.getoption("numprocesses", None):
        return  # the children are pytest's own workers, which end theirs
    end(children())
