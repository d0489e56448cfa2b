"""LMDB environments, safe against damaged files and watched while open."""

import contextlib
import fcntl
import json
import logging
import os
import shutil
import struct
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import lmdb
from lmdb.verify import VerifyError, verify

_verify: Callable[[str], list[str]] = verify
_log = logging.getLogger(__name__)
_DATA, _STATE = "data.mdb", "state.json"
_QUICKLY_VERIFIED_BYTES = 64 << 20
"""Verifying takes 17 s a GiB; files up to this size are verified after every crash."""
_MAX_READERS = 512

# LMDB 0.9, 64 bit: page header (16 bytes), magic, version, address, map size, two database records of 48 bytes whose
# first begins with the page size, last page, transaction.
_META = struct.Struct("<16xII8x8xI92xQQ")
_MAGIC = 0xBEEFC0DE

_LAYOUT = "v1"
"""A new layout gets a new name, so that processes of different versions never read each other's files."""


def open_environment(directory: Path, *, max_bytes: int, durable: bool, alone: bool) -> lmdb.Environment:
    """Open an environment, or a new one in place of a damaged one.

    A commit of a durable one waits for the disk. `alone` says that no other process has it open, so that it may be
    verified and replaced.

    Raises:
        OSError: The directory cannot be made, read or written.
        lmdb.Error: LMDB cannot open it.
    """
    directory.mkdir(parents=True, exist_ok=True)
    if alone:
        damage = _damage(directory)
        if damage:
            set_aside(directory, damage, keep=durable)
    if alone or not (directory / _DATA).exists():
        _write_state(directory, clean=None)
    environment = lmdb.open(
        str(directory), map_size=max_bytes, sync=durable, metasync=durable, readahead=False, max_readers=_MAX_READERS
    )
    environment.reader_check()
    return environment


def data_file(directory: Path) -> Path:
    """The file that holds an environment's pages."""
    return directory / _DATA


def mark_clean(directory: Path) -> None:
    """Says of a closed environment that it is as it should be. Nobody may have it open."""
    if (directory / _DATA).exists():
        _write_state(directory, clean=_identity(directory / _DATA))


def mark_suspect(directory: Path) -> None:
    """Has an environment that misbehaved verified at its next opening."""
    (directory / _STATE).unlink(missing_ok=True)


def set_aside(directory: Path, damage: str, *, keep: bool) -> None:
    """Makes room for a new environment; what was meant to last is kept beside it for people to look at."""
    if keep:
        aside = directory.with_name(f"{directory.name}.damaged-{time.time_ns()}")
        directory.rename(aside)
        _log.error("%s was damaged (%s) and starts anew; the old files are in %s", directory, damage, aside)
    else:
        shutil.rmtree(directory)
        _log.warning("%s was damaged (%s) and starts anew", directory, damage)
    directory.mkdir()


def _damage(directory: Path) -> str:
    """Return what is wrong with the environment at rest, "" for nothing."""
    data = directory / _DATA
    if not data.exists():
        return ""
    if not data.stat().st_size:
        return "empty file"
    state = _read_state(directory)
    if state.get("clean") == _identity(data):
        return ""
    try:
        if state.get("boot") == _boot() and data.stat().st_size > _QUICKLY_VERIFIED_BYTES:
            return _truncation(data)
        problems = _verify(str(directory))
    except (VerifyError, ValueError, LookupError, ArithmeticError, struct.error) as error:
        return str(error) or type(error).__name__
    return problems[0] if problems else ""


def _truncation(data: Path) -> str:
    """Return how far a file is shorter than its meta pages promise, "" where it is not."""
    with data.open("rb") as file:
        expected = _promised_bytes(file.fileno())
    found = data.stat().st_size
    return "" if found >= expected else f"{found} bytes instead of {expected}"


def _promised_bytes(file: int) -> int:
    """Return the size that an open file must have for all pages of its meta pages, which are read past the map.

    Raises:
        ValueError, struct.error: The meta pages are damaged, or gone.
    """
    first = _META.unpack(os.pread(file, _META.size, 0))
    second = _META.unpack(os.pread(file, _META.size, first[2]))
    if first[0] != _MAGIC or first[:3] != second[:3]:
        raise ValueError("meta pages disagree")
    return int((max(first[3], second[3]) + 1) * first[2])


def _identity(data: Path) -> list[int]:
    status = data.stat()
    return [status.st_size, status.st_mtime_ns, status.st_ino]


def _boot() -> str:
    """Names the time since the machine started; pages written before that may not have reached the disk in order."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _read_state(directory: Path) -> dict[str, Any]:
    try:
        state = json.loads((directory / _STATE).read_text())
    except (OSError, ValueError):
        return {}
    return state if isinstance(state, dict) else {}


def _write_state(directory: Path, *, clean: list[int] | None) -> None:
    (directory / _STATE).write_text(json.dumps({"boot": _boot(), "clean": clean}))


class StoreDirectory:
    """A directory that processes of one machine may share.

    Each holds a shared lock as long as it uses the directory. One that finds itself alone holds an exclusive lock while
    it verifies and repairs, and so does the last one to leave while it marks what it leaves as clean.

    Args:
        root: The directory; made if it is not there.

    Raises:
        OSError: It cannot be made or written.
    """

    def __init__(self, root: Path) -> None:
        self.path = root / _LAYOUT
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._use: IO[Any] = (self.path / "use.lock").open("a")
        self._closed: list[Path] = []
        self._pid = os.getpid()
        try:
            fcntl.flock(self._use, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.alone = True
        except BlockingIOError:
            fcntl.flock(self._use, fcntl.LOCK_SH)
            self.alone = False

    @property
    def ours(self) -> bool:
        """Return whether this is the process that opened it; a forked child must not touch what its parent opened."""
        return os.getpid() == self._pid

    def share(self) -> None:
        """Lets others in, once all is opened and repaired."""
        fcntl.flock(self._use, fcntl.LOCK_SH)
        self.alone = False

    def close_environment(self, environment: lmdb.Environment, *, suspect: bool) -> None:
        """Writes an environment out and closes it; one that misbehaved will be verified at its next opening."""
        path = Path(environment.path())
        if suspect:
            mark_suspect(path)
        else:
            environment.sync(True)  # noqa: FBT003 - py-lmdb takes it by position
            self._closed.append(path)
        environment.close()

    def close(self) -> None:
        """Gives the lock back; the last process marks what was closed as clean first."""
        with self._use, contextlib.suppress(BlockingIOError):
            fcntl.flock(self._use, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for path in self._closed:
                mark_clean(path)

    @contextlib.contextmanager
    def rotating(self) -> Iterator[None]:
        """Held by the one process that makes or removes a generation."""
        with (self.path / "rotate.lock").open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


class TruncatedError(lmdb.Error):
    """The file of an environment has shrunk; nothing may be read from it before its `rebuild`."""

    def __init__(self, environment: "WatchedEnvironment") -> None:
        super().__init__(f"{environment.path.name}: its file was cut short while it was open")
        self.environment = environment


class WatchedEnvironment:
    """An environment whose file is watched while it is open; raises as `open_environment`.

    Any thread may read. One thread alone writes, rebuilds and closes: the writer. With `durable` a commit waits for the
    disk, and a damaged file is kept for people to look at.
    """

    def __init__(self, directory: StoreDirectory, path: Path, *, max_bytes: int, durable: bool) -> None:
        self.path = path
        self._directory = directory
        self._max_bytes = max_bytes
        self._durable = durable
        self._reading = threading.Lock()  # of readers on other threads than the writer's, and of closing
        self._environment: Any = None
        self._file: int | None = None
        """None after a rebuild that failed, until one goes well."""
        self._largest_bytes = 0
        self._noting = threading.Lock()
        self._open(alone=directory.alone)

    @contextlib.contextmanager
    def reading(self) -> Iterator[Any]:
        """A short transaction for reading, on any thread.

        Raises:
            TruncatedError: The file has shrunk.
            lmdb.Error: LMDB's.
        """
        with self._reading:
            self.check()
            with self._environment.begin() as transaction:
                yield transaction

    @contextlib.contextmanager
    def on_writer(self, *, write: bool) -> Iterator[Any]:
        """A transaction of the writer's thread, which readers need not wait for; raises as `reading`."""
        self.check()
        with self._environment.begin(write=write) as transaction:
            yield transaction
        if write:
            self.check()  # notes how far the file has grown

    def check(self) -> None:
        """Raise TruncatedError if the file has shrunk or is not open; a long scan calls this again and again."""
        if self._file is None:
            raise TruncatedError(self)
        # Both before the size is read. Another thread may note a larger size meanwhile. Another process may have grown
        # the file since this one looked at it last; LMDB writes pages before the meta page that promises them.
        largest = self._largest_bytes
        try:
            largest = max(largest, _promised_bytes(self._file))
        except (ValueError, struct.error) as error:
            raise TruncatedError(self) from error
        status = os.fstat(self._file)
        size = status.st_size
        # What is written into a deleted file is lost; files of vectors are deleted by others as they need room.
        if size < largest or (self._durable and not status.st_nlink):
            raise TruncatedError(self)
        if size > largest:
            with self._noting:
                self._largest_bytes = max(size, self._largest_bytes)

    def rebuild(self) -> None:
        """Put a new environment in place of one that was cut short, on the writer's thread.

        Raises as `open_environment`.
        """
        with self._directory.rotating(), self._reading:
            try:
                self.check()
            except TruncatedError as error:
                # Another process may have made a new one already: what lies there then is not what we have open.
                damage = str(error) if self._is_there() else ""
            else:
                return
            self._release()
            if damage:
                set_aside(self.path, damage, keep=self._durable)
            self._open(alone=False)

    def close(self, *, suspect: bool) -> None:
        """Writes it out and closes it; one that misbehaved is verified at its next opening."""
        try:
            self.check()
        except TruncatedError:
            suspect = True
        with self._reading:
            if self._file is not None:
                self._directory.close_environment(self._environment, suspect=suspect)
                os.close(self._file)
                self._file = None

    def drop(self) -> None:
        """Closes one that is not kept."""
        with self._reading:
            self._release()

    def _open(self, *, alone: bool) -> None:
        environment = open_environment(self.path, max_bytes=self._max_bytes, durable=self._durable, alone=alone)
        try:
            # LMDB locks another file, so that opening and closing this one takes no lock from it.
            self._file = os.open(data_file(self.path), os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            environment.close()
            raise
        self._environment = environment
        self._largest_bytes = os.fstat(self._file).st_size

    def _release(self) -> None:
        if self._file is not None:
            file, self._file = self._file, None
            self._environment.close()
            os.close(file)

    def _is_there(self) -> bool:
        if self._file is None:
            return False
        with contextlib.suppress(FileNotFoundError):
            return data_file(self.path).stat().st_ino == os.fstat(self._file).st_ino
        return False
