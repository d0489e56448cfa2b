"""Files that appear in a folder together: what is there is whole, or is not there."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from gradewire_models.build.progress import ignore
from gradewire_models.build.publish.lock import exclusive, exclusive_if_free

_PREFIX = ".gradewire-unfinished-"
_LOCK = "lock"
_FILES = "files"


@contextmanager
def staged(directory: Path) -> Iterator[Path]:
    """A fresh folder whose files move into `directory` at the end; after an error nothing of them is there.

    Weights are taken away first and come last: a folder without them is no model to anybody who builds one from it.

    Args:
        directory: Where they go; other files in it stay.

    Yields:
        The fresh folder, below `directory`, of a name that nobody else has. What a killed process leaves of it is for
        `remove_unfinished`.

    Raises:
        OSError: The directory cannot be written.
    """
    place = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=directory))
    with exclusive(place / _LOCK, ignore):
        try:
            fresh = place / _FILES
            fresh.mkdir()
            yield fresh
            _move(fresh, directory)
        finally:
            shutil.rmtree(place)


def remove_unfinished(directory: Path) -> None:
    """Removes what killed processes left of their `staged` folders; those of processes that are alive stay.

    Raises:
        OSError: Something of it cannot be removed.
    """
    for place in directory.glob(f"{_PREFIX}*"):
        # Without a lock file it is not ours, or its owner is about to write one, as it is about to make the folder of
        # its files: what holds nothing yet is left alone. One that is gone has just been finished or removed.
        with suppress(FileNotFoundError, NotADirectoryError), exclusive_if_free(place / _LOCK) as dead:
            if dead and (place / _FILES).is_dir():
                shutil.rmtree(place)


def _move(fresh: Path, directory: Path) -> None:
    files = sorted(path for path in fresh.rglob("*") if path.is_file())
    weights = [path for path in files if path.suffix == ".safetensors"]
    for old in directory.glob("*.safetensors"):
        old.unlink()
    for path in [*(each for each in files if each not in weights), *weights]:
        target = directory / path.relative_to(fresh)
        target.parent.mkdir(exist_ok=True)
        path.replace(target)
