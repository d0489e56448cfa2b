"""How long the event loops of a server's processes were held, as `watching/sitecustomize.py` writes it from within."""

import os
import struct
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

_FIGURES: Final = struct.Struct("ddd")
_WATCHING: Final = Path(__file__).with_name("watching")


class Hold(NamedTuple):
    """The longest, the most that the loop's thread computed in one, and the most that all of the process did in one."""

    ms: float
    cpu_ms: float
    own_ms: float


class Watched:
    """The holds of all processes of a server.

    Args:
        directory: Where they write.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def reset(self) -> None:
        """Forgets what was seen so far."""
        for path in self._directory.iterdir():
            with path.open("r+b") as file:
                file.write(bytes(_FIGURES.size))

    def longest(self) -> dict[str, Hold]:
        """By role, since `reset`; of several processes of a role the most that any of them had, figure by figure."""
        found: dict[str, Hold] = {}
        for path in self._directory.iterdir():
            role = path.name.partition("-")[0]
            hold = Hold(*(1e3 * value for value in _FIGURES.unpack(path.read_bytes())))
            found[role] = Hold(*map(max, found.get(role, hold), hold))
        return found


@contextmanager
def watched_environment() -> Iterator[Watched]:
    """Processes that are started within it are watched."""
    with tempfile.TemporaryDirectory() as directory:
        before = dict(os.environ)
        os.environ["HOLDS_DIRECTORY"] = directory
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(_WATCHING), before.get("PYTHONPATH"))))
        try:
            yield Watched(Path(directory))
        finally:
            os.environ.clear()
            os.environ.update(before)
