"""Steps that wait in a database on disk, within limits and through kills, and the scores of those that are finished."""

import contextlib
import fcntl
import hashlib
import json
import logging
import os
import random
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import Any, Final, Literal, get_args

from gradewire._fork_safety import forget_in_children, keep_for_good
from gradewire.errors import InvalidRequest, TransportError
from gradewire.integrations.training.step_rows import decode_row
from gradewire.integrations.training.step_scores import StepHeader, StepScores, StepState, WaitingStep
from gradewire.options import check_most

_log = logging.getLogger("gradewire.validation")

WhenFull = Literal["drop_oldest", "drop_newest"]

_FIRST_WAIT_S: Final = 0.5
_LONGEST_WAIT_S: Final = 30.0
_REFUSED_WAIT_S: Final = 60.0
"""Seconds to wait after a refusal: the server refuses again until somebody changes something there."""
_JITTER: Final = 0.2

_VERSION: Final = 1
_SETTINGS: Final = "locking_mode=EXCLUSIVE auto_vacuum=FULL journal_mode=WAL synchronous=FULL wal_autocheckpoint=1"
_SCHEMA: Final = f"""
BEGIN;
CREATE TABLE steps (
    sequence INTEGER PRIMARY KEY, step INTEGER, header BLOB, rows BLOB, items INTEGER, digest BLOB
);
CREATE TABLE scores (number INTEGER PRIMARY KEY, sequence INTEGER, state TEXT, scores TEXT);
PRAGMA user_version = {_VERSION};
COMMIT;
"""
_MOST_LISTED: Final = 10_000
"""Finished steps whose scores stay in memory, a few kilobytes each; the file has all."""
_MOST_BYTES: Final = 10**9 - 1
"""Bytes of one step that the database takes at most."""

_DATABASE: Final = "steps.sqlite"


@dataclass(frozen=True, slots=True, kw_only=True)
class SpoolLimits:
    """How much may wait on disk.

    Attributes:
        max_bytes: Bytes of all steps that wait. A single step above it is dropped.
        max_steps: Steps that wait.
        when_full: The step that gives way: the one that waits longest, or the new one.
    """

    max_bytes: int = 1024**3
    max_steps: int = 10_000
    when_full: WhenFull = "drop_oldest"

    def __post_init__(self) -> None:
        check_most("max_bytes", self.max_bytes)
        check_most("max_steps", self.max_steps)
        if self.when_full not in get_args(WhenFull):
            raise InvalidRequest(f"when_full={self.when_full!r}: give one of {', '.join(get_args(WhenFull))}")


@dataclass(slots=True)
class RetryTimes:
    """Clocks are monotonic seconds.

    A server that cannot be reached is tried by one step after the other, at growing intervals; a step that was refused
    waits a minute and lets others go first.
    """

    _failures: Counter[int] = field(default_factory=Counter)
    _due_s: dict[int, float] = field(default_factory=dict)
    _server_failures: int = 0
    _server_due_s: float = 0.0

    def failed(self, sequence: int, error: Exception, now_s: float) -> float:
        """Note a failure; return the seconds until the step is due again."""
        self._failures[sequence] += 1
        wait_s = _REFUSED_WAIT_S
        if isinstance(error, TransportError) and error.may_pass:
            self._server_failures += 1
            grown = min(_FIRST_WAIT_S * 2.0 ** min(self._server_failures - 1, 30), _LONGEST_WAIT_S)
            wait_s = (error.retry_after_s or grown) * random.uniform(1, 1 + _JITTER)  # noqa: S311 - spreads load
            self._server_due_s = now_s + wait_s
        self._due_s[sequence] = now_s + wait_s
        return wait_s

    def answered(self) -> None:
        """Note that the server is there."""
        self._server_failures = 0
        self._server_due_s = 0.0

    def finished(self, sequence: int) -> None:
        """Forget a step that needs no more tries."""
        self._failures.pop(sequence, None)
        self._due_s.pop(sequence, None)

    def failures(self, sequence: int) -> int:
        """Return how often this process tried the step in vain."""
        return self._failures[sequence]

    def due_s(self, sequence: int) -> float:
        """Return when it may be tried."""
        return max(self._server_due_s, self._due_s.get(sequence, 0.0))


class Spool:
    """Takes steps, hands out those that are due, and keeps what became of them; safe for several threads.

    No call waits for the network. The lock is held for the disk, never while something is scored or called back. Each
    step is written in one transaction and removed in the one that writes its scores, so a kill loses none.

    Args:
        directory: Made when missing.
        limits: How much may wait.

    Attributes:
        damaged: Steps that were set aside when the directory was opened.
        closed: True once `close` was called.

    Raises:
        InvalidRequest: The directory is in use, or another version wrote it.
        OSError: It cannot be used.
    """

    def __init__(self, directory: Path, limits: SpoolLimits) -> None:
        self._directory = directory
        self._limits = limits
        self._changed = threading.Condition()
        self._times = RetryTimes()
        self._problems: dict[int, str] = {}
        self._waiting: dict[int, WaitingStep] = {}
        # Steps whose scores are with sinks and callbacks.
        self._delivering: set[int] = set()
        self._finished: dict[int, StepScores] = {}
        self._counts: Counter[StepState] = Counter()
        self._exported: int | None = None
        self._next = 0
        self.damaged: list[StepScores] = []
        self.closed = False
        directory.mkdir(parents=True, exist_ok=True)
        self._lock = _lock(directory)
        try:
            self._database = _open(directory)
            self._open_waiting()
        except BaseException:
            os.close(self._lock)
            raise
        forget_in_children(self)

    def add(self, header: StepHeader, rows: Iterable[bytes]) -> tuple[StepState, list[StepScores]]:
        """Write a step; return its state, and what was given up for it, or itself, as scores to tell of.

        Raises:
            OSError: The disk takes no more; nothing is lost of what waits.
        """
        with self._changed:
            taken, problem = self._taken(rows)
            if problem:
                return StepState.DROPPED, [self.refuse(header, problem)]
            head, content = json.dumps(asdict(header)).encode(), b"".join(taken)
            step = WaitingStep(self._next, header, len(taken), len(head) + len(content))
            dropped = {
                each.sequence: each.finished(StepState.DROPPED, why, time.time())
                for each, why in self._over_limits(step)
            }
            row = (step.sequence, header.step, head, content, step.items, _digest(head, content))
            with self._transaction():
                self._database.execute("INSERT INTO steps VALUES (?, ?, ?, ?, ?, ?)", row)
                self._insert(dropped)
            self._next += 1
            self._waiting[step.sequence] = step
            self._settle(dropped)
            is_kept = step.sequence in self._waiting
            self._changed.notify_all()
            return StepState.NOT_SCORED if is_kept else StepState.DROPPED, list(dropped.values())

    def refuse(self, header: StepHeader, problem: str) -> StepScores:
        """Note a step that never was on disk; raises OSError where that cannot be written either."""
        with self._changed:
            scores = header.result(StepState.DROPPED, problem, time.time())
            self._end({self._next: scores})
            self._next += 1
            return scores

    def take(self) -> WaitingStep | None:
        """Return the next step that is due, waiting for one; None when closed."""
        with self._changed:
            while not self.closed:
                now_s = time.monotonic()
                step, due_s = self._next_due()
                if step is not None and due_s <= now_s:
                    return step
                self._changed.wait(None if step is None else due_s - now_s)
            return None

    def read(self, step: WaitingStep) -> list[Any] | StepScores | None:
        """Return its rows; what became of it where they are damaged; None where it has been dropped meanwhile."""
        with self._changed:
            if self.closed or step.sequence not in self._waiting:
                return None
            with self._transaction():
                query = "SELECT header, rows, digest FROM steps WHERE sequence = ?"
                stored = self._database.execute(query, (step.sequence,)).fetchone() or (b"", b"", b"")
        try:
            _check(*stored)
            return [decode_row(line) for line in stored[1].splitlines()]
        except (ValueError, TypeError) as error:
            problem = self._set_aside(step.sequence, step.header.step, stored, error)
            with self._changed:
                scores = step.finished(StepState.CORRUPT, problem, time.time())
                self._end({step.sequence: scores})
                self._changed.notify_all()
                return scores

    def failed(self, step: WaitingStep, error: Exception, problem: str = "") -> float:
        """Note why a step was not scored; return the seconds until it is tried again."""
        with self._changed:
            if self.closed or step.sequence not in self._waiting:
                return 0.0
            self._problems[step.sequence] = problem or f"{type(error).__name__}: {error}"
            return self._times.failed(step.sequence, error, time.monotonic())

    def scored(self, step: WaitingStep) -> bool:
        """Return True if the scores of a step are wanted still; from here on it waits for `delivered`."""
        with self._changed:
            self._times.answered()
            if self.closed or step.sequence not in self._waiting:
                return False
            self._delivering.add(step.sequence)
            return True

    def delivered(self, step: WaitingStep, scores: StepScores) -> None:
        """Keep the scores, and remove the step.

        Raises:
            OSError: They cannot be kept; the step is scored again later.
        """
        with self._changed:
            self._delivering.discard(step.sequence)
            try:
                if not self.closed:
                    self._end({step.sequence: scores})
            except OSError as error:
                self._problems[step.sequence] = str(error)
                self._times.failed(step.sequence, error, time.monotonic())
                raise
            finally:
                self._changed.notify_all()

    def wait_empty(self, timeout_s: float | None) -> bool:
        """Return True once nothing waits and nothing is being delivered; False after `timeout_s`."""
        with self._changed:
            self._changed.wait_for(lambda: self.closed or not self._waiting, timeout_s)
            return not self._waiting

    def results(self) -> list[StepScores]:
        """Return the latest submission of each name and step, by step."""
        with self._changed:
            submitted = self._finished | {
                sequence: step.finished(StepState.NOT_SCORED, self._problems.get(sequence, ""))
                for sequence, step in self._waiting.items()
            }
        latest = {(scores.name, scores.step): scores for _, scores in sorted(submitted.items(), key=itemgetter(0))}
        return sorted(latest.values(), key=lambda scores: (scores.step, scores.name))

    def counts(self) -> Counter[StepState]:
        """Return the number of steps by state, since the directory was new."""
        with self._changed:
            return self._counts + Counter({StepState.NOT_SCORED: len(self._waiting)})

    def close(self) -> None:
        """End the waiting of all, and let other processes have the directory."""
        with self._changed:
            if not self.closed:
                self.closed = True
                self._database.close()
                os.close(self._lock)
            self._changed.notify_all()

    def forget(self) -> None:
        """Leave the database to the parent in a forked child, and close the copy of the lock, which would hold on."""
        keep_for_good(self._database)
        if not self.closed:
            with contextlib.suppress(OSError):
                os.close(self._lock)

    def _taken(self, rows: Iterable[bytes]) -> tuple[list[bytes], str]:
        """Return the rows of a new step, or why it has to give way; an endless source ends where there is no room."""
        limits = self._limits
        room = limits.max_bytes
        if limits.when_full == "drop_newest":
            room -= self._size_bytes()
            if len(self._waiting) >= limits.max_steps:
                return [], f"{len(self._waiting)} steps wait, and more than max_steps={limits.max_steps} may not"
        taken: list[bytes] = []
        left = min(room, _MOST_BYTES)
        for row in rows:
            taken.append(row)
            left -= len(row)
            if left < 0:
                return [], f"its rows take more than {room} bytes, and more may not wait (max_bytes)"
        return taken, ""

    def _over_limits(self, added: WaitingStep) -> Iterator[tuple[WaitingStep, str]]:
        """Yield the steps that give way to a new one, the oldest first, each with why."""
        limits = self._limits
        steps, size_bytes = len(self._waiting) + 1, self._size_bytes() + added.size_bytes
        for step in (*self._waiting.values(), added):
            if step.sequence in self._delivering:
                continue  # it leaves by itself at once
            if steps > limits.max_steps:
                yield step, f"more than max_steps={limits.max_steps} waited, and this one longest"
            elif size_bytes > limits.max_bytes:
                yield step, f"more than max_bytes={limits.max_bytes} waited, and this one longest"
            else:
                return
            steps, size_bytes = steps - 1, size_bytes - step.size_bytes

    def _size_bytes(self) -> int:
        return sum(step.size_bytes for step in self._waiting.values())

    def _next_due(self) -> tuple[WaitingStep | None, float]:
        """Return the step whose turn it is, and when it is due."""
        tried: list[WaitingStep] = []
        for sequence, step in self._waiting.items():
            if sequence in self._delivering:
                continue
            if not self._times.failures(sequence):
                # Nearly always the first that is looked at, of ten thousand: what was not tried yet goes by its age.
                return step, self._times.due_s(sequence)
            tried.append(step)
        if not tried:
            return None, 0.0
        now_s = time.monotonic()
        due_s = {step.sequence: self._times.due_s(step.sequence) for step in tried}
        # The fewest failures first, then the oldest.
        turns = {each: (max(due_s[each], now_s), self._times.failures(each), each) for each in due_s}
        step = min(tried, key=lambda step: turns[step.sequence])
        return step, due_s[step.sequence]

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        try:
            with self._database:
                self._database.execute("BEGIN IMMEDIATE")
                yield
        except sqlite3.Error as error:
            raise OSError(f"{self._directory / _DATABASE}: {error}") from error

    def _end(self, finished: Mapping[int, StepScores]) -> None:
        """Write how steps ended, and remove them; raises OSError where the disk takes no more: they wait on."""
        with self._transaction():
            self._insert(finished)
        self._settle(finished)

    def _insert(self, finished: Mapping[int, StepScores]) -> None:
        for sequence, scores in finished.items():
            row = (sequence, scores.state, json.dumps(scores.to_dict()))
            self._database.execute("INSERT INTO scores (sequence, state, scores) VALUES (?, ?, ?)", row)
            self._database.execute("DELETE FROM steps WHERE sequence = ?", (sequence,))

    def _settle(self, finished: Mapping[int, StepScores]) -> None:
        """Take steps out of memory whose end is written."""
        for sequence, scores in finished.items():
            self._waiting.pop(sequence, None)
            self._times.finished(sequence)
            self._problems.pop(sequence, None)
            self._counts[scores.state] += 1
            self._finished[sequence] = scores
        for sequence in list(self._finished)[: max(0, len(self._finished) - _MOST_LISTED)]:
            del self._finished[sequence]
        self._export()

    def _export(self) -> None:
        """Append to the file what it lacks of the scores; what fails is tried again after the next step."""
        path = self._directory / "scores.jsonl"
        try:
            if self._exported is None:
                data = path.read_bytes() if path.exists() else b""
                self._exported = data.count(b"\n")
                if not data.endswith(b"\n") and data:
                    os.truncate(path, data.rfind(b"\n") + 1)  # a kill or a full disk cut the last line off
            query = "SELECT sequence, scores FROM scores WHERE number > ? ORDER BY number"
            lacking = self._database.execute(query, (self._exported,)).fetchall()
            if not lacking:
                return
            exported, self._exported = self._exported + len(lacking), None
            with path.open("ab") as file:
                for sequence, scores in lacking:
                    file.write(json.dumps({"sequence": sequence, **json.loads(scores)}).encode() + b"\n")
            self._exported = exported
        except (OSError, sqlite3.Error):
            _log.exception("%s lacks scores that are kept in %s", path, _DATABASE)

    def _open_waiting(self) -> None:
        """Read what earlier processes left."""
        with self._transaction():
            query = "SELECT sequence, scores FROM scores ORDER BY number DESC LIMIT ?"
            newest = self._database.execute(query, (_MOST_LISTED,)).fetchall()
            self._finished = {sequence: StepScores.from_dict(json.loads(scores)) for sequence, scores in newest[::-1]}
            states = self._database.execute("SELECT state, count(*) FROM scores GROUP BY state")
            self._counts = Counter({StepState(state): count for state, count in states})
            query = "SELECT sequence FROM steps UNION SELECT sequence FROM scores"
            self._next = 1 + max((sequence for (sequence,) in self._database.execute(query)), default=-1)
            damaged = {}
            query = "SELECT sequence, step, items, header, rows, digest FROM steps ORDER BY sequence"
            for sequence, step, items, *stored in self._database.execute(query):
                try:
                    _check(*stored)
                    header = StepHeader(**json.loads(stored[0]))
                except (ValueError, TypeError) as error:
                    problem = self._set_aside(sequence, step, stored, error)
                    damaged[sequence] = StepScores(
                        step, "", 0, StepState.CORRUPT, problem=problem, ended_unix_s=time.time()
                    )
                else:
                    self._waiting[sequence] = WaitingStep(sequence, header, items, len(stored[0]) + len(stored[1]))
        self._end(damaged)
        self.damaged = list(damaged.values())

    def _set_aside(self, sequence: int, step: int, stored: Sequence[Any], error: Exception) -> str:
        """Write what is there of a damaged step to a file; return what is wrong and where it lies."""
        folder = self._directory / "corrupt"
        folder.mkdir(exist_ok=True)
        path = folder / f"{sequence:012d}-step{step}.jsonl"
        header, rows, _ = stored
        path.write_bytes(bytes(header) + b"\n" + bytes(rows))
        return f"it was damaged ({error}) and lies at {path}"


def _digest(header: bytes, rows: bytes) -> bytes:
    return hashlib.blake2b(header + b"\n" + rows, digest_size=16).digest()


def _check(header: bytes, rows: bytes, digest: bytes) -> None:
    if _digest(header, rows) != digest:
        raise ValueError("its header and rows are not those that were written")


def _lock(directory: Path) -> int:
    """Return the file that holds the lock on a directory; raises InvalidRequest where another owner has it."""
    file = os.open(directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        owner = os.pread(file, 20, 0).decode(errors="replace").strip() or "another process"
        os.close(file)
        raise InvalidRequest(
            f"directory={str(directory)!r} is in use by process {owner}: give each scorer one of its own "
            "(each rank of a distributed training too), or close the other"
        ) from None
    except OSError as error:
        _log.warning("%s cannot be locked (%s): only one scorer may use it at a time", directory, error)
    os.ftruncate(file, 0)
    os.pwrite(file, str(os.getpid()).encode(), 0)
    return file


def _open(directory: Path) -> sqlite3.Connection:
    """Return the database of a directory that is locked already: it takes no lock of its own."""
    path = directory / _DATABASE
    if (directory / "pending").exists():
        raise InvalidRequest(
            f"directory={str(directory)!r} holds steps of an earlier version of gradewire: let that version score "
            "them, or give another directory"
        )
    try:
        database = sqlite3.connect(
            f"{path.absolute().as_uri()}?vfs=unix-none", uri=True, isolation_level=None, check_same_thread=False
        )
        # Locked exclusively, the journal needs no shared memory, which file systems of clusters do not have. It is
        # emptied after each step, so that steps do not take their room twice.
        for setting in _SETTINGS.split():
            database.execute(f"PRAGMA {setting}")
        (version,) = database.execute("PRAGMA user_version").fetchone()
        if version not in {0, _VERSION}:
            database.close()
            raise InvalidRequest(f"directory={str(directory)!r} was written by a later version of gradewire: use that")
        if not version:
            database.executescript(_SCHEMA)
    except sqlite3.Error as error:
        raise OSError(f"{path} cannot be used: {error}; if it is damaged, move it away") from error
    return database
