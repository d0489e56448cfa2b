"""Files on object stores and other file systems that fsspec knows, by URL."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from gradewire.cli.problems import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+(::[A-Za-z][A-Za-z0-9+.-]+)*://")


def is_url(path: str) -> bool:
    """Whether a path names a file system of fsspec, and not a file of this machine by its plain path."""
    return _URL.match(path) is not None


def file_system(url: str) -> tuple[Any, str]:
    """The fsspec file system of a URL, and the path there.

    Raises:
        InputError: fsspec, or what it needs for this protocol, is not installed, or it knows no such protocol.
    """
    try:
        import fsspec  # noqa: PLC0415 - optional

        system, path = fsspec.core.url_to_fs(url)
    except ImportError as error:
        missing = "fsspec: pip install 'gradewire[ray]'" if error.name == "fsspec" else str(error)
        raise InputError(f"{url}: reading and writing it needs {missing}") from error
    except ValueError as error:
        raise InputError(f"{url}: {error}") from error
    return system, path


def open_url(url: str) -> Any:
    """A buffered, seekable stream of a file's bytes; raises InputError where it is not there or cannot be read."""
    system, path = file_system(url)
    try:
        return system.open(path, "rb")
    except OSError as error:
        raise InputError(f"{url}: {error.strerror or error}") from error


def matching_urls(url: str) -> Sequence[str]:
    """The files that a pattern (*, ?, [) matches, in the order of their names; raises InputError as `file_system`."""
    system, path = file_system(url)
    return sorted(system.unstrip_protocol(found) for found in system.glob(path))
