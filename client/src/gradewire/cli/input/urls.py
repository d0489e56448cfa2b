"""Files on object stores and other file systems that fsspec knows, by URL."""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from gradewire.cli.problems import InputError
from gradewire.cli.url_keys import shown_url

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+(::[A-Za-z][A-Za-z0-9+.-]+)*://")


def is_url(path: str) -> bool:
    """Whether a path names a file system of fsspec, and not a file of this machine by its plain path."""
    return _URL.match(path) is not None


def shown_names(paths: Sequence[str]) -> list[str]:
    """What files are called wherever they are shown or kept: without keys of URLs, each otherwise than the others."""
    names = [shown_url(path) if is_url(path) else path for path in paths]
    times = Counter(names)
    return [name if times[name] == 1 else f"{name} ({number})" for number, name in enumerate(names, 1)]


@contextlib.contextmanager
def place_errors(place: str) -> Iterator[None]:
    """Turns whatever a file system raises into the command's error, which names the file or its URL.

    Raises:
        InputError: It cannot be read or written.
    """
    try:
        yield
    except click.ClickException:
        raise
    except OSError as error:
        raise InputError(f"{shown_url(place)}: {error.strerror or error}") from error
    except Exception as error:
        # The package of each store has errors of its own, for instance where it has no credentials.
        if not is_url(place):
            raise
        raise InputError(f"{shown_url(place)}: {str(error) or type(error).__name__}") from error


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
        raise InputError(f"{shown_url(url)}: reading and writing it needs {missing}") from error
    except ValueError as error:
        raise InputError(f"{shown_url(url)}: {error}") from error
    return system, path


def protocols(system: Any) -> tuple[str, ...]:
    """Names of an fsspec file system in URLs."""
    return (system.protocol,) if isinstance(system.protocol, str) else tuple(system.protocol)


def local_path(place: str) -> Path | None:
    """The path of a file or folder on this machine, given by its path or URL; None on another file system.

    Raises:
        InputError: As `file_system`.
    """
    if not is_url(place):
        return Path(place)
    system, path = file_system(place)
    return Path(path) if "file" in protocols(system) else None


def open_url(url: str) -> Any:
    """A buffered, seekable stream of a file's bytes; raises InputError where it is not there or cannot be read."""
    system, path = file_system(url)
    with place_errors(url):
        return system.open(path, "rb")


def matching_urls(url: str) -> Sequence[str]:
    """The files that a pattern (*, ?, [) matches, in the order of their names; raises InputError where none can be."""
    system, path = file_system(url)
    with place_errors(url):
        return sorted(system.unstrip_protocol(found) for found in system.glob(path))
