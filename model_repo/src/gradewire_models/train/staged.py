"""Files that appear in a folder together: what is there is whole, or is not there."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PREFIX = ".gradewire-unfinished-"


@contextmanager
def staged(directory: Path) -> Iterator[Path]:
    """A fresh folder whose files move into `directory` at the end; after an error nothing of them is there.

    Weights are taken away first and come last: a folder without them is no model to anybody who builds one from it.

    Args:
        directory: Where they go; other files in it stay.

    Yields:
        The fresh folder, below `directory`, of a name that nobody else has.

    Raises:
        OSError: The directory cannot be written.
    """
    fresh = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=directory))
    try:
        yield fresh
        files = sorted(path for path in fresh.rglob("*") if path.is_file())
        weights = [path for path in files if path.suffix == ".safetensors"]
        for old in directory.glob("*.safetensors"):
            old.unlink()
        for path in [*(each for each in files if each not in weights), *weights]:
            target = directory / path.relative_to(fresh)
            target.parent.mkdir(exist_ok=True)
            path.replace(target)
    finally:
        shutil.rmtree(fresh)
