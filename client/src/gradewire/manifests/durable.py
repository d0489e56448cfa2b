"""Files that are there after a power cut."""

import contextlib
import errno
import os
import sys
from collections.abc import Iterator
from pathlib import Path

_NOT_SYNCED = frozenset({errno.EINVAL, errno.ENOTSUP, errno.EACCES, errno.EPERM, errno.ENOSYS})
"""What opening or syncing a folder fails with where the file system, or a folder that may not be read, has no such
thing: then the file system alone decides when a new name lasts."""


@contextlib.contextmanager
def replacing(path: Path, *, unfinished: Path | None = None) -> Iterator[Path]:
    """Give the name to write a file under, and the file its own name then, as `replace_synced` does.

    Args:
        path: Its name.
        unfinished: Its name until all is there; None: PATH.new. It is gone at the end, whatever happens.

    Raises:
        OSError: The disk does not take it.
    """
    new = unfinished or path.with_name(f"{path.name}.new")
    try:
        yield new
        replace_synced(new, path)
    finally:
        new.unlink(missing_ok=True)


def replace_synced(unfinished: Path, path: Path) -> None:
    """Gives a file that is written and closed its name, in place of what has it: all or nothing, power cuts included.

    When it returns, other files may be removed for which this one stands.

    Args:
        unfinished: The file, beside `path`; it is gone under this name then.
        path: Its name.

    Raises:
        OSError: The disk does not take it; under the name is what was there, or the whole new file.
    """
    # Windows syncs what may be written alone.
    with unfinished.open("r+b") as stream:
        os.fsync(stream.fileno())
    unfinished.replace(path)
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """Makes the names in a folder last."""
    if sys.platform == "win32":  # has folders that cannot be opened, and journals names
        return
    try:
        opened = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)
    except OSError as error:
        if error.errno not in _NOT_SYNCED:
            raise
