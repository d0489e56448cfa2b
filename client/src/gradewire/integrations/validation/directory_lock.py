"""One owner for a directory: the kernel frees the lock when its process ends, however it ends."""

import contextlib
import fcntl
import logging
import os
from pathlib import Path

from gradewire._fork_safety import forget_in_children
from gradewire.errors import InvalidRequest

_log = logging.getLogger("gradewire.validation")


class DirectoryLock:
    """Held from when it is made until `release`.

    Args:
        directory: Exists.

    Raises:
        InvalidRequest: Another owner has it, in this process or another one.
    """

    def __init__(self, directory: Path) -> None:
        self._file: int | None = os.open(directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.pread(self._file, 20, 0).decode(errors="replace").strip() or "another process"
            os.close(self._file)
            raise InvalidRequest(
                f"directory={str(directory)!r} is in use by process {owner}: give each scorer one of its own "
                "(each rank of a distributed training too), or close the other"
            ) from None
        except OSError as error:
            _log.warning("%s cannot be locked (%s): only one scorer may use it at a time", directory, error)
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, str(os.getpid()).encode(), 0)
        forget_in_children(self)

    def release(self) -> None:
        """Lets others have it; twice is fine."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def forget(self) -> None:
        """In a forked child: closes its copy, which would hold the lock beyond the parent's end."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                os.close(self._file)
            self._file = None
