"""Write several files so that a folder gets all of them or none."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from gradewire_models.locks import exclusive, exclusive_if_free

_PREFIX = ".gradewire-unfinished-"
_LOCK = "lock"
_FILES = "files"


@contextmanager
def staged(directory: Path) -> Iterator[Path]:
    """Yield a new folder in `directory`, then move its files to `directory`; after an error, move nothing.

    The move first deletes old weights and adds new weights last, so that no build uses an incomplete folder.
    `remove_unfinished` removes a killed process's leftovers.

    Raises:
        OSError: The directory is not writable.
    """
    workspace = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=directory))
    with exclusive(workspace / _LOCK, lambda _: None):
        try:
            fresh = workspace / _FILES
            fresh.mkdir()
            yield fresh
            _move(fresh, directory)
        finally:
            shutil.rmtree(workspace)


def remove_unfinished(directory: Path) -> None:
    """Remove the `staged` folders of killed processes, and keep the folders of running processes.

    Raises:
        OSError: A folder cannot be removed.
    """
    for workspace in directory.glob(f"{_PREFIX}*"):
        # A folder that lacks the lock file or the inner folder is not ours or is just being created, so keep it.
        with suppress(FileNotFoundError, NotADirectoryError), exclusive_if_free(workspace / _LOCK) as dead:
            if dead and (workspace / _FILES).is_dir():
                shutil.rmtree(workspace)


def _move(fresh: Path, directory: Path) -> None:
    files = sorted(path for path in fresh.rglob("*") if path.is_file())
    weights = [path for path in files if path.suffix == ".safetensors"]
    for old in directory.glob("*.safetensors"):
        old.unlink()
    for path in [*(each for each in files if each not in weights), *weights]:
        target = directory / path.relative_to(fresh)
        target.parent.mkdir(exist_ok=True)
        path.replace(target)
