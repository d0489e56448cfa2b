"""The server's directory on disk: which processes use it, and what lies where."""

import contextlib
import fcntl
import os
from pathlib import Path
from typing import IO, Any

import lmdb

from gradewire_server.storage.lmdb.environment import mark_clean, mark_suspect

_LAYOUT = "v1"
"""A new layout gets a new name, so that processes of different versions never read each other's files."""


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
        """Whether this is the process that opened it; a forked child must not touch what its parent opened."""
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

    def rotating(self) -> contextlib.AbstractContextManager[None]:
        """Held by the one process that makes or removes a generation."""
        return _exclusive(self.path / "rotate.lock")


@contextlib.contextmanager
def _exclusive(path: Path) -> Any:
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
