"""File locks, which let only one process work at a time."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def exclusive(path: Path, notify: Callable[[str], object]) -> Iterator[None]:
    """Hold the lock file `path` for the block. If another process holds the lock, call `notify` and wait.

    The file is never deleted. After a deletion, two processes could lock two different files with the same name.

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
    """If the existing lock file `path` is free, hold the file for the block; yield True if this process holds the file.

    Raises:
        OSError: The file is missing or cannot be opened.
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
