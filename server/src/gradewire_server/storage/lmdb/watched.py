"""An LMDB environment whose file is watched while it is open.

LMDB reads through a map of its file. Where somebody cuts the file short, a read of a page that is gone kills the whole
process (SIGBUS), and no handler of Python's can help. LMDB's files never shrink, so before each transaction the file's
size is compared with the largest seen (1 µs): a file that has shrunk is not read any more, and built anew.
"""

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lmdb

from gradewire_server.storage.lmdb.directory import StoreDirectory
from gradewire_server.storage.lmdb.environment import data_file, open_environment, set_aside


class TruncatedError(lmdb.Error):
    """The file of an environment has shrunk; nothing may be read from it.

    Attributes:
        environment: Whose it is; its `rebuild` makes a new one.
    """

    def __init__(self, environment: "WatchedEnvironment") -> None:
        super().__init__(f"{environment.path.name}: its file was cut short while it was open")
        self.environment = environment


class WatchedEnvironment:
    """One environment; see the module.

    Any thread may read. One thread alone writes, rebuilds and closes: the writer.

    Args:
        directory: The store that it is a part of.
        path: Its own directory, which is made if it is not there.
        max_bytes: Size of the map.
        durable: Whether a commit waits for the disk, and a damaged file is kept for people to look at.
        alone: As `open_environment`.

    Raises:
        OSError: As `open_environment`.
        lmdb.Error: As `open_environment`.
    """

    def __init__(self, directory: StoreDirectory, path: Path, *, max_bytes: int, durable: bool, alone: bool) -> None:
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
        self._open(alone=alone)

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
        """Raises TruncatedError where the file has shrunk or is not open; a long scan asks this again and again."""
        if self._file is None:
            raise TruncatedError(self)
        largest = self._largest_bytes  # before the size is read: another thread may note a larger one meanwhile
        status = os.fstat(self._file)
        size = status.st_size
        # What is written into a deleted file is lost; files of vectors are deleted by others as they need room.
        if size < largest or (self._durable and not status.st_nlink):
            raise TruncatedError(self)
        if size > largest:
            with self._noting:
                self._largest_bytes = max(size, self._largest_bytes)

    def rebuild(self) -> None:
        """Puts a new environment in place of one that was cut short; on the writer's thread.

        Raises:
            OSError: As `open_environment`.
            lmdb.Error: As `open_environment`.
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
