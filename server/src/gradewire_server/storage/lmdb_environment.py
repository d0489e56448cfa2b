"""LMDB environments that survive damaged files, and that check for truncated files while open."""

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
"""Maximum size of files to verify after every crash. Verification takes 17 s per GiB."""
_MAX_READERS = 512

# LMDB 0.9, 64 bit: page header (16 bytes), magic, version, address, map size, two database records of 48 bytes (the
# first begins with the page size), last page, transaction.
_META = struct.Struct("<16xII8x8xI92xQQ")
_MAGIC = 0xBEEFC0DE

_LAYOUT = "v1"
"""The layout's version. Change it with the layout, so that older and newer processes do not read each other's files."""


def open_environment(directory: Path, *, max_bytes: int, durable: bool, alone: bool) -> lmdb.Environment:
    """Open an environment; replace a damaged environment with a new one.

    If `durable` is True, a commit waits for the disk. Damage is found only with `alone=True`, which is forbidden while
    another process has the environment open.

    Raises:
        OSError: The directory cannot be created, read or written.
        lmdb.Error: LMDB cannot open the environment.
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
    """Return the path of an environment's data file."""
    return directory / _DATA


def mark_clean(directory: Path) -> None:
    """Mark a closed environment as intact. No process may have the environment open."""
    if (directory / _DATA).exists():
        _write_state(directory, clean=_identity(directory / _DATA))


def mark_suspect(directory: Path) -> None:
    """Mark a misbehaving environment, so that the next process to open it verifies the files."""
    (directory / _STATE).unlink(missing_ok=True)


def set_aside(directory: Path, damage: str, *, keep: bool) -> None:
    """Delete a damaged environment's files. If `keep` is True, rename their directory instead, for inspection."""
    if keep:
        aside = directory.with_name(f"{directory.name}.damaged-{time.time_ns()}")
        directory.rename(aside)
        _log.error("%s was damaged (%s) and is now empty; the old files are in %s", directory, damage, aside)
    else:
        shutil.rmtree(directory)
        _log.warning("%s was damaged (%s) and is now empty", directory, damage)
    directory.mkdir()


def _damage(directory: Path) -> str:
    """Return a description of a closed environment's damage; "" if it is intact."""
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
    """Return a message if a file is shorter than its meta pages require, otherwise ""."""
    with data.open("rb") as file:
        expected = _required_bytes(file.fileno())
    found = data.stat().st_size
    return "" if found >= expected else f"{found} bytes instead of {expected}"


def _required_bytes(file: int) -> int:
    """Return the size that an open file must have according to its meta pages. Do not use the memory map.

    Raises:
        ValueError, struct.error: The meta pages are damaged or missing.
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
    """Return an ID of the machine's current boot. Pages from an earlier boot may have reached the disk out of order."""
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
    """A directory that processes on one machine may share.

    Processes hold a shared lock while they use the directory, and an exclusive lock while they repair files or mark
    files as clean.

    Args:
        root: The directory. A missing directory is created.

    Raises:
        OSError: The directory cannot be created or written.
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
        """True in the process that opened the directory. A forked child must not touch its parent's files."""
        return os.getpid() == self._pid

    def share(self) -> None:
        """Let other processes open the directory. Call this when all environments are open and repaired."""
        fcntl.flock(self._use, fcntl.LOCK_SH)
        self.alone = False

    def close_environment(self, environment: lmdb.Environment, *, suspect: bool) -> None:
        """Flush and close an environment. The next process that opens a `suspect` environment verifies it."""
        path = Path(environment.path())
        if suspect:
            mark_suspect(path)
        else:
            environment.sync(True)  # noqa: FBT003 - py-lmdb accepts this argument only by position
            self._closed.append(path)
        environment.close()

    def close(self) -> None:
        """Release the lock. The last process first marks the closed files as clean."""
        with self._use, contextlib.suppress(BlockingIOError):
            fcntl.flock(self._use, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for path in self._closed:
                mark_clean(path)

    @contextlib.contextmanager
    def rotating(self) -> Iterator[None]:
        """Hold the lock that protects the creation and removal of generations."""
        with (self.path / "rotate.lock").open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


class TruncatedError(lmdb.Error):
    """Raised when an environment's file has shrunk. Call `rebuild` before you read the environment again."""

    def __init__(self, environment: "WatchedEnvironment") -> None:
        super().__init__(f"{environment.path.name}: the file was truncated while it was open")
        self.environment = environment


class WatchedEnvironment:
    """An open environment that checks whether its file has shrunk. It raises the same errors as `open_environment`.

    Any thread may read. Only the writer's thread may write, rebuild and close. If `durable` is True, a commit waits for
    the disk, and a damaged file is kept for inspection.
    """

    def __init__(self, directory: StoreDirectory, path: Path, *, max_bytes: int, durable: bool) -> None:
        self.path = path
        self._directory = directory
        self._max_bytes = max_bytes
        self._durable = durable
        self._reading = threading.Lock()  # held by readers on threads other than the writer's, and while closing
        self._environment: Any = None
        self._file: int | None = None
        """The open environment's file. None after a failed rebuild, until a later rebuild succeeds."""
        self._largest_bytes = 0
        self._noting = threading.Lock()
        self._open(alone=directory.alone)

    @contextlib.contextmanager
    def reading(self) -> Iterator[Any]:
        """Open a short read transaction, on any thread.

        Raises:
            TruncatedError: The file has shrunk.
            lmdb.Error: LMDB reports an error.
        """
        with self._reading:
            self.check()
            with self._environment.begin() as transaction:
                yield transaction

    @contextlib.contextmanager
    def on_writer(self, *, write: bool) -> Iterator[Any]:
        """Open a transaction on the writer's thread, without blocking readers; raise the same errors as `reading`."""
        self.check()
        with self._environment.begin(write=write) as transaction:
            yield transaction
        if write:
            self.check()  # record the file's new size

    def check(self) -> None:
        """Raise TruncatedError if the file has shrunk or is not open. Call this regularly during a long scan."""
        if self._file is None:
            raise TruncatedError(self)
        # Read both values before the file's size. They rise when another thread or process lets the file grow, so if
        # read later, they could exceed an intact file's size. LMDB writes pages before the meta page that uses them.
        largest = self._largest_bytes
        try:
            largest = max(largest, _required_bytes(self._file))
        except (ValueError, struct.error) as error:
            raise TruncatedError(self) from error
        status = os.fstat(self._file)
        size = status.st_size
        # Writes to a deleted file are lost, so a durable file must still exist. Other processes delete vector files.
        if size < largest or (self._durable and not status.st_nlink):
            raise TruncatedError(self)
        if size > largest:
            with self._noting:
                self._largest_bytes = max(size, self._largest_bytes)

    def rebuild(self) -> None:
        """Replace a truncated environment with a new one, on the writer's thread.

        Raise the same errors as `open_environment`.
        """
        with self._directory.rotating(), self._reading:
            try:
                self.check()
            except TruncatedError as error:
                # Another process may already have replaced the file that we have open.
                damage = str(error) if self._is_there() else ""
            else:
                return
            self._release()
            if damage:
                set_aside(self.path, damage, keep=self._durable)
            self._open(alone=False)

    def close(self, *, suspect: bool) -> None:
        """Flush and close the environment. The next process that opens a `suspect` environment verifies it."""
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
        """Close an environment whose files are no longer needed, without a flush."""
        with self._reading:
            self._release()

    def _open(self, *, alone: bool) -> None:
        environment = open_environment(self.path, max_bytes=self._max_bytes, durable=self._durable, alone=alone)
        try:
            # LMDB locks a different file, so opening and closing this file does not release a lock.
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
