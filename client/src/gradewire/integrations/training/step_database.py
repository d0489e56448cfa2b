"""The database in which steps wait on disk, through kills, and the scores of those that are finished are kept."""

import contextlib
import fcntl
import hashlib
import json
import logging
import os
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from gradewire._fork_safety import keep_for_good
from gradewire.errors import InvalidRequest
from gradewire.integrations.training.steps import StepHeader, StepScores, StepState, WaitingStep

_log = logging.getLogger("gradewire.validation")

_VERSION: Final = 2
_SETTINGS: Final = ("journal_mode=WAL", "synchronous=FULL", "wal_autocheckpoint=1")
_SCHEMA: Final = f"""
BEGIN;
CREATE TABLE steps (
    sequence INTEGER PRIMARY KEY, step INTEGER, header BLOB, rows BLOB, items INTEGER, digest BLOB
);
CREATE TABLE scores (number INTEGER PRIMARY KEY, sequence INTEGER, state TEXT, scores TEXT, digest BLOB);
PRAGMA user_version = {_VERSION};
COMMIT;
"""
_FROM_VERSION_1: Final = f"BEGIN; ALTER TABLE scores ADD COLUMN digest BLOB; PRAGMA user_version = {_VERSION}; COMMIT"
# Cast the columns, because damaged values may have another type, and not all bytes are text.
_SCORES: Final = "SELECT CAST(sequence AS INTEGER), CAST(scores AS BLOB), CAST(digest AS BLOB) FROM scores"
_CONTENT: Final = "CAST(header AS BLOB), CAST(rows AS BLOB), CAST(digest AS BLOB) FROM steps"
_STATES: Final = {state.value.encode(): state for state in StepState}
_DATABASE: Final = "steps.sqlite"
_MAX_SEQUENCE: Final = 1 << 62
"""Half of SQLite's largest integer: no spool gets there, but a flipped bit does."""


@dataclass(frozen=True, slots=True)
class StoredStep:
    """A step as it is stored: its `StepHeader` in JSON, its rows, a line of JSON each, and the digest of both."""

    header: bytes
    rows: bytes
    digest: bytes

    @classmethod
    def of(cls, header: bytes, rows: bytes) -> "StoredStep":
        """Return a step to be stored."""
        return cls(header, rows, _digest(header, rows))

    def checked_header(self, expected: StepHeader | None = None) -> StepHeader:
        """Return its header; raise ValueError or TypeError if that, or the rows, are not those that were written."""
        if _digest(self.header, self.rows) != self.digest:
            raise ValueError("its header and rows are not those that were written")
        header = StepHeader(**json.loads(self.header))
        if expected not in (None, header):
            raise ValueError("another step lies in its place")
        return header


def _digest(head: bytes, content: bytes) -> bytes:
    return hashlib.blake2b(head + b"\n" + content, digest_size=16).digest()


def _scores_digest(sequence: int, scores: bytes) -> bytes:
    return _digest(str(sequence).encode(), scores)


class StepDatabase:
    """The steps and scores of a directory, which one process has at a time.

    Each step is written in one transaction and removed in the one that writes its scores, so a kill loses none.

    Raises:
        InvalidRequest: The directory is in use, or another version wrote it.
        OSError: It cannot be used.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._exported: int | None = None
        _make(directory)
        self._lock = _lock(directory)
        try:
            self._connection = _open(directory)
        except BaseException:
            os.close(self._lock)
            raise

    def close(self) -> None:
        """Let other processes have the directory."""
        self._connection.close()
        os.close(self._lock)

    def forget(self, *, is_closed: bool) -> None:
        """Leave the database to the parent in a forked child, and close the copy of the lock, which would hold on."""
        keep_for_good(self._connection)
        if not is_closed:
            with contextlib.suppress(OSError):
                os.close(self._lock)

    def write(
        self, finished: Mapping[int, StepScores], added: WaitingStep | None = None, stored: StoredStep | None = None
    ) -> None:
        """Write the scores of steps, and remove these; add a step with its content in the same transaction.

        Raises:
            OSError: The disk takes no more; nothing is changed.
        """
        with self._transaction():
            if added is not None and stored is not None:
                row = (added.sequence, added.header.step, stored.header, stored.rows, added.items, stored.digest)
                self._connection.execute("INSERT INTO steps VALUES (?, ?, ?, ?, ?, ?)", row)
            for number, scores in finished.items():
                text = json.dumps(scores.to_dict())
                values = (number, scores.state, text, _scores_digest(number, text.encode()))
                insert = "INSERT INTO scores (sequence, state, scores, digest) VALUES (?, ?, ?, ?)"
                self._connection.execute(insert, values)
                self._connection.execute("DELETE FROM steps WHERE sequence = ?", (number,))

    def read(self, sequence: int) -> StoredStep:
        """Return a step that waits; raises OSError where the database cannot be read."""
        with self._transaction():
            query = f"SELECT {_CONTENT} WHERE sequence = ?"
            stored = self._connection.execute(query, (sequence,)).fetchone()
        return StoredStep(*(stored or (b"", b"", b"")))

    def steps(self) -> Iterator[tuple[int, int, StoredStep]]:
        """Yield the sequence number, step and content of each step that waits, the oldest first."""
        with self._transaction():
            query = f"SELECT sequence, CAST(coalesce(step, 0) AS INTEGER), {_CONTENT} ORDER BY sequence"
            for sequence, step, *stored in self._connection.execute(query):
                yield sequence, step, StoredStep(*stored)

    def scores(self, most: int) -> dict[int, StepScores]:
        """Return the newest scores by sequence number, the oldest first; damaged ones are left out and logged."""
        with self._transaction():
            newest = self._connection.execute(f"{_SCORES} ORDER BY number DESC LIMIT ?", (most,)).fetchall()
        found = {}
        for sequence, *stored in newest[::-1]:
            try:
                found[sequence] = _undamaged(sequence, *stored)
            except ValueError as error:
                path = self._directory / _DATABASE
                _log.error("%s: the scores of submission %s are damaged and left out (%s)", path, sequence, error)
        return found

    def counts(self) -> Counter[StepState]:
        """Return the number of finished steps by state."""
        counts: Counter[StepState] = Counter()
        query = "SELECT CAST(state AS BLOB), count(*) FROM scores GROUP BY state"
        with self._transaction():
            for state, count in self._connection.execute(query):
                counts[_STATES.get(state, StepState.CORRUPT)] += count
        return counts

    def next_sequence(self) -> int:
        """Return a number larger than those of all steps, except damaged numbers that leave no room above."""
        query = (
            "SELECT max(sequence) FROM (SELECT sequence FROM steps UNION SELECT CAST(sequence AS INTEGER) AS sequence "
            "FROM scores) WHERE sequence < ?"
        )
        with self._transaction():
            (last,) = self._connection.execute(query, (_MAX_SEQUENCE,)).fetchone()
        return 0 if last is None else 1 + int(last)

    def export(self) -> None:
        """Append to the file what it lacks of the scores; what fails is tried again after the next step."""
        path = self._directory / "scores.jsonl"
        try:
            if self._exported is None:
                data = path.read_bytes() if path.exists() else b""
                self._exported = data.count(b"\n")
                if not data.endswith(b"\n") and data:
                    os.truncate(path, data.rfind(b"\n") + 1)  # a kill or a full disk cut the last line off
            query = f"{_SCORES} WHERE number > ? ORDER BY number"
            lacking = self._connection.execute(query, (self._exported,)).fetchall()
            if not lacking:
                return
            exported, self._exported = self._exported + len(lacking), None
            with path.open("ab") as file:
                for sequence, *stored in lacking:
                    file.write(json.dumps(_exported(sequence, *stored)).encode() + b"\n")
            self._exported = exported
        except (OSError, sqlite3.Error):
            _log.exception("%s lacks scores that are kept in %s", path, _DATABASE)

    def set_aside(self, sequence: int, step: int, stored: StoredStep, error: Exception) -> str:
        """Write what is there of a damaged step to a file; return what is wrong and where it lies."""
        folder = self._directory / "corrupt"
        folder.mkdir(exist_ok=True)
        path = folder / f"{sequence:012d}-step{step}.jsonl"
        path.write_bytes((stored.header or b"") + b"\n" + (stored.rows or b""))
        return f"it was damaged ({error}) and lies at {path}"

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        try:
            with self._connection:
                self._connection.execute("BEGIN IMMEDIATE")
                yield
        except sqlite3.Error as error:
            raise OSError(f"{self._directory / _DATABASE}: {error}") from error


def _undamaged(sequence: int, scores: bytes, digest: bytes | None) -> StepScores:
    """Return scores as they were written; raise ValueError where they are damaged. Version 1 stored no digest."""
    try:
        if digest is not None and digest != _scores_digest(sequence, scores):
            raise ValueError("they are not those that were written")
        return StepScores.from_dict(json.loads(scores))
    except (AttributeError, LookupError, TypeError) as error:
        raise ValueError(str(error)) from error


def _exported(sequence: int, scores: bytes, digest: bytes | None) -> dict[str, Any]:
    """Return the line of scores in the file; damaged ones keep their place, by which lines are counted."""
    try:
        return {"sequence": sequence, **_undamaged(sequence, scores, digest).to_dict()}
    except ValueError as error:
        problem = f"the scores are damaged in {_DATABASE} ({error})"
        return {"sequence": sequence, "state": StepState.CORRUPT, "problem": problem}


def _make(directory: Path) -> None:
    """Create a directory, and make its name and those of its new parents durable."""
    new = [each for each in (directory, *directory.parents) if not each.exists()]
    directory.mkdir(parents=True, exist_ok=True)
    for each in new:
        folder = os.open(each.parent, os.O_RDONLY | os.O_CLOEXEC)
        try:
            with contextlib.suppress(OSError):  # some file systems cannot sync folders
                os.fsync(folder)
        finally:
            os.close(folder)


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
    with contextlib.suppress(OSError):  # the disk is full: nobody needs the number, and scores may wait here
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
    with contextlib.ExitStack() as failed:
        try:
            database = sqlite3.connect(
                f"{path.absolute().as_uri()}?vfs=unix-none", uri=True, isolation_level=None, check_same_thread=False
            )
            # Left open it would go on in the file beside the next one, for there are no locks.
            failed.callback(database.close)
            # Locked exclusively, the journal needs no shared memory, which file systems of clusters do not have. It is
            # emptied after each step, so that steps do not take their room twice.
            database.execute("PRAGMA locking_mode=EXCLUSIVE")
            (version,) = database.execute("PRAGMA user_version").fetchone()
            if version not in range(_VERSION + 1):
                raise InvalidRequest(
                    f"directory={str(directory)!r} was written by a later version of gradewire: use that"
                )
            # Not of tables that are there: it would write, and a full disk must keep nobody from what waits.
            for setting in _SETTINGS if version else ("auto_vacuum=FULL", *_SETTINGS):
                database.execute(f"PRAGMA {setting}")
            if version < _VERSION:
                database.executescript(_FROM_VERSION_1 if version else _SCHEMA)
            (state,) = database.execute("PRAGMA quick_check(1)").fetchone()
            if state != "ok":  # SQLite would go on, and find one step in the place of another
                raise sqlite3.DatabaseError(state)
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise OSError(f"{path} cannot be used: {error}; if it is damaged, move it away") from error
        if not os.access(path, os.W_OK):  # SQLite reads such a file, and says so at the first step
            raise OSError(f"{path} cannot be written")
        failed.pop_all()
    return database
