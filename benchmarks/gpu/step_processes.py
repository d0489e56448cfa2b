"""Run a step in a process of its own, keep each row that it reports, and end everything that it has started."""

import contextlib
import ctypes
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final

GRACE_S: Final = 8.0
"""Seconds in which a step stops its servers after SIGTERM. They are part of its budget."""
_LOG_CHARACTERS: Final = 500
_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36
_KILL_ROUNDS: Final = 50
_KILL_POLL_S: Final = 0.1

Row = dict[str, Any]


class NotRunError(Exception):
    """An error for a step that this machine cannot run; the message states the reason."""


@dataclass(slots=True)
class Outcome:
    """The result of a step: its rows, and the reason if it did not run to its end."""

    rows: list[Row] = field(default_factory=list)
    why: str = ""
    seconds: float = 0.0


def adopt_orphans() -> None:
    """Make this process the parent of its descendants whose parents end, so that it finds and ends them."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def exit_on_sigterm() -> None:
    """Exit on SIGTERM, so that this process stops its servers."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))


def end_with_parent(parent: int) -> None:
    """Let the kernel send SIGTERM to this process when its parent ends; exit if `parent` has already ended."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        sys.exit(128 + signal.SIGTERM)


def report_rows(step: Callable[[], Iterator[Row]]) -> None:
    """Run a step in this process, and write each row to standard output as soon as it is known.

    Everything else that the step's libraries print goes to standard error.
    """
    with os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8") as replies:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

        def reply(message: Row) -> None:
            replies.write(json.dumps(message) + "\n")
            replies.flush()

        try:
            for row in step():
                reply({"row": row})
        except NotRunError as error:
            reply({"why": f"not run: {error}"})
        except Exception as error:  # noqa: BLE001 - a failed step is a result, and the next ones still run
            reply({"why": f"failed: {type(error).__name__}: {_one_line(str(error))[:_LOG_CHARACTERS]}"})
        else:
            reply({"why": ""})


def run_apart(command: Sequence[str], limit_s: float, log: Path) -> Outcome:
    """Run a command that calls `report_rows`, for at most `limit_s`, and return what it has reported.

    At the end, also if this function raises, no process that the command has started is left. `log` receives the
    command's standard error.
    """
    began_s = time.monotonic()
    before = descendants()
    outcome = Outcome()
    with (
        log.open("w+", encoding="utf-8") as errors,
        # A separate session keeps Ctrl-C from the step, which is then ended in order.
        subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, start_new_session=True
        ) as process,
    ):
        try:
            if not _read(process, outcome, began_s + limit_s - GRACE_S, errors):
                outcome.why = f"stopped: the budget of {limit_s:.0f} s was used up"
        finally:
            _end(process, before)
    outcome.seconds = time.monotonic() - began_s
    return outcome


def descendants() -> set[int]:
    """Return the IDs of all processes below this one, without zombies."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError):  # a process that has ended meanwhile
                state, parent, *_ = (entry / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
                if state != "Z":
                    children.setdefault(int(parent), []).append(int(entry.name))
    found: set[int] = set()
    waiting = [os.getpid()]
    while waiting:
        below = children.get(waiting.pop(), [])
        found.update(below)
        waiting += below
    return found


def _read(process: subprocess.Popen[bytes], outcome: Outcome, until_s: float, errors: IO[str]) -> bool:
    """Read the step's messages; return False if it has not ended by `until_s`."""
    assert process.stdout is not None
    unread = b""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while selector.select(max(0.0, until_s - time.monotonic())):
            received = os.read(process.stdout.fileno(), 1 << 16)
            *lines, unread = (unread + received).split(b"\n")
            for message in map(json.loads, lines):
                if "row" in message:
                    outcome.rows.append(message["row"])
                else:
                    outcome.why = message["why"]
                    return True
            if not received:
                status = process.wait(GRACE_S)
                errors.seek(0)
                said = _one_line(errors.read())[-_LOG_CHARACTERS:]
                outcome.why = f"failed: the step's process ended with status {status}: {said}"
                return True
    return False


def _end(process: subprocess.Popen[bytes], before: set[int]) -> None:
    """End a step's process, at first in order, and then all processes that are new since `before`."""
    process.terminate()  # does nothing to a process that has ended
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(GRACE_S)
    killed: set[int] = set()
    for _ in range(_KILL_ROUNDS):
        left = descendants() - before
        if not left:
            break
        for each in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)
        killed |= left
        time.sleep(_KILL_POLL_S)
    for each in killed - {process.pid}:
        with contextlib.suppress(ChildProcessError):  # another process was the parent, and has waited
            os.waitpid(each, os.WNOHANG)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _prctl(option: int, value: int) -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")
