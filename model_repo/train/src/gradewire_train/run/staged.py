"""Files that appear in a folder together, each of them complete."""

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
    """Yield a new folder below `directory`, whose files move into that at the end; after an error none does.

    Other files there stay, but for old weights, which are removed first, and new ones come last: no build takes a
    folder without weights for a model. What a killed process leaves of the folder, `remove_unfinished` removes.

    Raises:
        OSError: The directory cannot be written.
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
    """Remove what killed processes left of their `staged` folders; those of processes that are alive stay.

    Raises:
        OSError: Something of it cannot be removed.
    """
    for workspace in directory.glob(f"{_PREFIX}*"):
        # Without a lock file or the folder of files it is not ours, or a process is just making it: it stays. One that
        # is not found has just been finished or removed.
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
