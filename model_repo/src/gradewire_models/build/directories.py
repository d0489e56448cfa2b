"""Directories of a repository: one builder at a time, and an atomic exchange of two directories."""

import ctypes
import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gradewire_models.build.progress import Progress, Report


@contextmanager
def exclusive(path: Path, report: Report) -> Iterator[None]:
    """Holds the lock file `path` while the body runs; waits for another holder, and says so.

    The lock belongs to the open file, so it is gone with its process however that ends. The file itself stays: taking
    it away would let two processes hold locks on two files of one name.

    Raises:
        OSError: The file cannot be opened.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report(Progress(f"waiting for another build that holds {path}"))
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def exclusive_if_free(path: Path) -> Iterator[bool]:
    """Holds the lock file `path`, which has to be there, while the body runs, unless somebody else holds it.

    Yields:
        Whether it is held: nobody who is alive does then.

    Raises:
        OSError: The file is not there, or cannot be opened.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            held = True
        except BlockingIOError:
            held = False
        yield held
    finally:
        os.close(descriptor)


_AT_FDCWD = -100  # relative paths start at the working directory
_RENAME_EXCHANGE = 2
_NOT_HERE = {errno.ENOSYS, errno.EINVAL}


def exchange(one: Path, other: Path) -> bool:
    """Lets two directories of one file system change places: nobody ever finds either name missing (renameat2).

    Returns:
        False where system or file system cannot do it; nothing has changed then.

    Raises:
        OSError: One of them is not there, or may not be renamed.
    """
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except AttributeError:  # neither Linux with a glibc of 2018 or later, nor musl of 2024
        return False
    if rename(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE) == 0:
        return True
    code = ctypes.get_errno()
    if code in _NOT_HERE:
        return False
    raise OSError(code, os.strerror(code), str(one), None, str(other))
