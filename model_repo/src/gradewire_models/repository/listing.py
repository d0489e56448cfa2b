"""Finds the directories of a repository, of encoders or of judges, by the file that describes each."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from gradewire_models.errors import ModelBrokenError

T = TypeVar("T")

_MAX_NAME_BYTES = 255
"""Of a directory, on the file systems that there are; the system calls a longer name an error."""

_log = logging.getLogger(__name__)
_logged: dict[Path, str] = {}
"""The last warning about each broken directory: repositories are listed again and again."""


def described_in(repository: Path, file: str) -> list[Path]:
    """Directories that hold `file`, by name; those that begin with a dot are somebody's work in progress."""
    return sorted(path.parent for path in repository.glob(f"[!.]*/{file}"))


def find_directory(repository: Path, name: str, file: str) -> Path | None:
    """The directory called `name` that holds `file`; None where there is none, or the name is no plain name."""
    if (
        not name
        or name.startswith(".")
        or Path(name).name != name
        or len(name.encode(errors="surrogatepass")) > _MAX_NAME_BYTES
    ):
        return None
    directory = repository / name
    return directory if (directory / file).is_file() else None


def list_sound(repository: Path, file: str, describe: Callable[[Path], T]) -> list[T]:
    """Describes every directory that holds `file`, by name.

    One of which `describe` raises ModelBrokenError is left out, and a warning is logged once for each reason.
    """
    found = []
    for directory in described_in(repository, file):
        try:
            found.append(describe(directory))
        except ModelBrokenError as error:
            if _logged.get(directory) != str(error):
                _logged[directory] = str(error)
                _log.warning("%s", error)
        else:
            _logged.pop(directory, None)
    return found
