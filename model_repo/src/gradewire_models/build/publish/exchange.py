"""Two directories change places in one step, where the system can do that."""

import ctypes
import errno
import os
from pathlib import Path

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
