"""Locks of files: one process at a time."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def exclusive(path: Path, notify: Callable[[str], object]) -> Iterator[None]:
    """Hold the lock file `path` while the body runs; wait for another holder, and `notify` of that.

    The lock belongs to the open file, so it is gone with its process however that ends. The file itself stays: taking
    it away would let two processes hold locks on two files of one name.

    Raises:
        OSError: The file cannot be opened.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with _opened(path, os.O_CREAT) as descriptor:
        if not _try_lock(descriptor):
            notify(f"waiting for another process that holds {path}")
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield


@contextmanager
def exclusive_if_free(path: Path) -> Iterator[bool]:
    """Hold the lock file `path`, which has to be there, while the body runs, unless somebody else holds it.

    Yields:
        True where it is held: no living process holds it otherwise.

    Raises:
        OSError: The file is not there, or cannot be opened.
    """
    with _opened(path, 0) as descriptor:
        yield _try_lock(descriptor)


@contextmanager
def _opened(path: Path, flags: int) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | flags, 0o644)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
