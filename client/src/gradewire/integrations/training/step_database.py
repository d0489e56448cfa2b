"""The database that keeps waiting steps and finished steps' scores on disk, even if the process is killed."""

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
# Cast the columns, because a damaged value may have another type, and its bytes may not be text.
_SCORES: Final = "SELECT CAST(sequence AS INTEGER), CAST(scores AS BLOB), CAST(digest AS BLOB) FROM scores"
_CONTENT: Final = "CAST(header AS BLOB), CAST(rows AS BLOB), CAST(digest AS BLOB) FROM steps"
_STATES: Final = {state.value.encode(): state for state in StepState}
_DATABASE: Final = "steps.sqlite"
_MAX_SEQUENCE: Final = 1 << 62
"""Half of SQLite's largest integer. Any larger sequence number is damaged."""


@dataclass(frozen=True, slots=True)
class StoredStep:
    """A stored step: its `StepHeader` in JSON, its rows (a JSON line for each item), and a digest of both."""

    header: bytes
    rows: bytes
    digest: bytes

    @classmethod
    def of(cls, header: bytes, rows: bytes) -> "StoredStep":
        """Return a step to store, with its digest."""
        return cls(header, rows, _digest(header, rows))

    def checked_header(self, expected: StepHeader | None = None) -> StepHeader:
        """Return the header; raise ValueError or TypeError if the header or the rows are damaged."""
        if _digest(self.header, self.rows) != self.digest:
            raise ValueError("its header and rows do not match their digest")
        header = StepHeader(**json.loads(self.header))
        if expected not in (None, header):
            raise ValueError("another step is stored in its place")
        return header


def _digest(head: bytes, content: bytes) -> bytes:
    return hashlib.blake2b(head + b"\n" + content, digest_size=16).digest()


def _scores_digest(sequence: int, scores: bytes) -> bytes:
    return _digest(str(sequence).encode(), scores)


class StepDatabase:
    """The steps and scores in a directory. Only one process can use the directory at a time.

    A killed process loses no step.

    Raises:
        InvalidRequest: The directory is in use, or another version wrote it.
        OSError: The directory cannot be used.
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
        """Release the directory for other processes."""
        self._connection.close()
        os.close(self._lock)

    def forget(self, *, is_closed: bool) -> None:
        """In a forked child, leave the database to the parent, and close the child's descriptor of the lock file.

        An open descriptor would keep the directory locked.
        """
        keep_for_good(self._connection)
        if not is_closed:
            with contextlib.suppress(OSError):
                os.close(self._lock)

    def write(
        self, finished: Mapping[int, StepScores], added: WaitingStep | None = None, stored: StoredStep | None = None
    ) -> None:
        """Store the scores of finished steps, remove these steps, and add a new step, all in one transaction.

        Raises:
            OSError: The database cannot be written, for example on a full disk; nothing is changed.
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
        """Return a waiting step; raise OSError if the database cannot be read."""
        with self._transaction():
            query = f"SELECT {_CONTENT} WHERE sequence = ?"
            stored = self._connection.execute(query, (sequence,)).fetchone()
        return StoredStep(*(stored or (b"", b"", b"")))

    def steps(self) -> Iterator[tuple[int, int, StoredStep]]:
        """Yield the sequence number, training step and content of each waiting step, oldest first."""
        with self._transaction():
            query = f"SELECT sequence, CAST(coalesce(step, 0) AS INTEGER), {_CONTENT} ORDER BY sequence"
            for sequence, step, *stored in self._connection.execute(query):
                yield sequence, step, StoredStep(*stored)

    def scores(self, most: int) -> dict[int, StepScores]:
        """Return the `most` newest scores, oldest first, by sequence number. Skip and log damaged scores."""
        with self._transaction():
            newest = self._connection.execute(f"{_SCORES} ORDER BY number DESC LIMIT ?", (most,)).fetchall()
        found = {}
        for sequence, *stored in newest[::-1]:
            try:
                found[sequence] = _undamaged(sequence, *stored)
            except ValueError as error:
                path = self._directory / _DATABASE
                _log.error("%s: skipped the damaged scores of submission %s (%s)", path, sequence, error)
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
        """Return a number larger than every undamaged sequence number."""
        query = (
            "SELECT max(sequence) FROM (SELECT sequence FROM steps UNION SELECT CAST(sequence AS INTEGER) AS sequence "
            "FROM scores) WHERE sequence < ?"
        )
        with self._transaction():
            (last,) = self._connection.execute(query, (_MAX_SEQUENCE,)).fetchone()
        return 0 if last is None else 1 + int(last)

    def export(self) -> None:
        """Append missing scores to `scores.jsonl`. If this fails, the next export appends them."""
        path = self._directory / "scores.jsonl"
        try:
            if self._exported is None:
                data = path.read_bytes() if path.exists() else b""
                self._exported = data.count(b"\n")
                if not data.endswith(b"\n") and data:
                    os.truncate(path, data.rfind(b"\n") + 1)  # a kill or a full disk cut off the last line
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
            _log.exception("cannot append scores to %s; %s still contains the scores", path, _DATABASE)

    def set_aside(self, sequence: int, step: int, stored: StoredStep, error: Exception) -> str:
        """Write a damaged step to a file; return a message with the damage and the file's path."""
        folder = self._directory / "corrupt"
        folder.mkdir(exist_ok=True)
        path = folder / f"{sequence:012d}-step{step}.jsonl"
        path.write_bytes((stored.header or b"") + b"\n" + (stored.rows or b""))
        return f"the step is damaged ({error}); its remaining data is in {path}"

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        try:
            with self._connection:
                self._connection.execute("BEGIN IMMEDIATE")
                yield
        except sqlite3.Error as error:
            raise OSError(f"{self._directory / _DATABASE}: {error}") from error


def _undamaged(sequence: int, scores: bytes, digest: bytes | None) -> StepScores:
    """Return stored scores; raise ValueError if they are damaged."""
    try:
        if digest is not None and digest != _scores_digest(sequence, scores):
            raise ValueError("they do not match their digest")
        return StepScores.from_dict(json.loads(scores))
    except (AttributeError, LookupError, TypeError) as error:
        raise ValueError(str(error)) from error


def _exported(sequence: int, scores: bytes, digest: bytes | None) -> dict[str, Any]:
    """Return the content of a line in `scores.jsonl`. Damaged scores get a line too, because `export` counts lines."""
    try:
        return {"sequence": sequence, **_undamaged(sequence, scores, digest).to_dict()}
    except ValueError as error:
        problem = f"the scores in {_DATABASE} are damaged ({error})"
        return {"sequence": sequence, "state": StepState.CORRUPT, "problem": problem}


def _make(directory: Path) -> None:
    """Create a directory and its parents, and sync their names to disk if the file system supports this."""
    new = [each for each in (directory, *directory.parents) if not each.exists()]
    directory.mkdir(parents=True, exist_ok=True)
    for each in new:
        with contextlib.suppress(OSError):  # a folder that cannot be read or synced
            folder = os.open(each.parent, os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)


def _lock(directory: Path) -> int:
    """Lock a directory and return the lock file's descriptor; raise InvalidRequest if the directory is in use."""
    file = os.open(directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        owner = os.pread(file, 20, 0).decode(errors="replace").strip() or "another process"
        os.close(file)
        raise InvalidRequest(
            f"directory={str(directory)!r} is in use by process {owner}: give each scorer (in "
            "distributed training, each rank) a separate directory, or close the other scorer"
        ) from None
    except OSError as error:
        _log.warning("cannot lock %s (%s): make sure that only one scorer at a time uses it", directory, error)
    with contextlib.suppress(OSError):  # a full disk must not stop the scorer; only a message needs the process ID
        os.ftruncate(file, 0)
        os.pwrite(file, str(os.getpid()).encode(), 0)
    return file


def _open(directory: Path) -> sqlite3.Connection:
    path = directory / _DATABASE
    if (directory / "pending").exists():
        raise InvalidRequest(
            f"directory={str(directory)!r} contains steps from an earlier gradewire version: let that version score "
            "them, or give a different directory"
        )
    with contextlib.ExitStack() as failed:
        try:
            database = sqlite3.connect(
                f"{path.absolute().as_uri()}?vfs=unix-none", uri=True, isolation_level=None, check_same_thread=False
            )
            # SQLite takes no lock here, so an open connection and the next scorer could both write to the file.
            failed.callback(database.close)
            # In exclusive mode the journal needs no shared memory, which cluster file systems do not support.
            # `_SETTINGS` makes SQLite empty the journal after each step, so that no step stays on disk twice.
            database.execute("PRAGMA locking_mode=EXCLUSIVE")
            (version,) = database.execute("PRAGMA user_version").fetchone()
            if version not in range(_VERSION + 1):
                raise InvalidRequest(
                    f"directory={str(directory)!r} was written by a later gradewire version: use that version"
                )
            # Set auto_vacuum only in a new database. In an existing database, the setting would write to the
            # file, and a full disk must not prevent opening the database.
            for setting in _SETTINGS if version else ("auto_vacuum=FULL", *_SETTINGS):
                database.execute(f"PRAGMA {setting}")
            if version < _VERSION:
                database.executescript(_FROM_VERSION_1 if version else _SCHEMA)
            (state,) = database.execute("PRAGMA quick_check(1)").fetchone()
            if state != "ok":  # SQLite would accept the file and might return the wrong step.
                raise sqlite3.DatabaseError(state)
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise OSError(f"{path} cannot be used: {error}; if the file is damaged, move it away") from error
        if not os.access(path, os.W_OK):  # SQLite opens such a file, and fails only when a step is written.
            raise OSError(f"{path} cannot be written")
        failed.pop_all()
    return database
