"""Predictions on disk: two generations of maps. When the newer is full a new one begins and the oldest goes.

So old vectors leave in bulk, at the price of deleting a file, and what is still in use is copied forward when hit.
"""

import re
import shutil
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

import lmdb

from gradewire_server.storage.lmdb.directory import StoreDirectory
from gradewire_server.storage.lmdb.watched import WatchedEnvironment

_KEPT = 2
_MOST_ROTATIONS = 4
_NAME = re.compile(r"predictions-(\d{6,})")


class Generations:
    """The generations of one directory, as this process has them open.

    `read` may run in one thread while `write` runs in another. A process that holds a generation that another has
    removed goes on with it until its own map is full.

    Args:
        directory: Where they lie.
        max_bytes: Of all generations together.

    Raises:
        OSError: As `open_environment`.
        lmdb.Error: As `open_environment`.
    """

    def __init__(self, directory: StoreDirectory, *, max_bytes: int) -> None:
        self._directory = directory
        self._map_bytes = max_bytes // _KEPT
        self._lock = threading.Lock()  # of the list below and of closing what is in it, never of a write
        self._open: list[tuple[int, WatchedEnvironment]] = []
        with directory.rotating():
            self._adopt(alone=directory.alone)

    @property
    def numbers(self) -> list[int]:
        """Generations that are open, newest first."""
        return [number for number, _ in self._open]

    def read(self, keys: Sequence[bytes]) -> tuple[list[bytes | None], list[int]]:
        """Values by key, None for what no generation has; and positions of those that an older one had.

        Raises:
            TruncatedError: A file has shrunk.
            lmdb.Error: A map misbehaves.
        """
        values: list[bytes | None] = [None] * len(keys)
        older: list[int] = []
        with self._lock:
            missing = list(range(len(keys)))
            for age, (_, environment) in enumerate(self._open):
                if not missing:
                    break
                with environment.reading() as transaction:
                    for position in missing:
                        values[position] = transaction.get(keys[position])
                if age:
                    older += [position for position in missing if values[position] is not None]
                missing = [position for position in missing if values[position] is None]
        return values, older

    def write(self, values: Mapping[bytes, bytes]) -> None:
        """Keeps values in the newest generation, which may have to be made.

        Raises:
            OSError: A new generation cannot be made.
            lmdb.Error: A map misbehaves, or all values together do not fit into an empty one.
        """
        for _ in range(_MOST_ROTATIONS):
            try:
                self._put(values)
            except (lmdb.MapFullError, lmdb.MapResizedError):
                self._rotate()  # to a generation of another process, perhaps, that is full by now as well
            else:
                return
        self._put(values)

    def close(self, *, suspect: bool) -> None:
        """Closes all maps; says whether one of them misbehaved."""
        with self._lock:
            for _, environment in self._open:
                environment.close(suspect=suspect)
            self._open = []

    def _put(self, values: Mapping[bytes, bytes]) -> None:
        _, newest = self._open[0]
        with newest.on_writer(write=True) as transaction:
            for key, value in values.items():
                transaction.put(key, value)

    def _rotate(self) -> None:
        with self._directory.rotating():
            found = _scan(self._directory.path)
            mine = self._open[0][0]
            newest = max([mine, *(number for number, _ in found)])
            if newest == mine:  # else another process has rotated already
                (self._directory.path / _name(newest + 1)).mkdir(exist_ok=True)
            for _, path in _scan(self._directory.path)[_KEPT:]:
                shutil.rmtree(path)
            self._adopt(alone=False)

    def _adopt(self, *, alone: bool) -> None:
        """Opens the generations that are there now, and closes those that are not kept any more."""
        found = _scan(self._directory.path)[:_KEPT] or [(1, self._directory.path / _name(1))]
        known = dict(self._open)
        opened = []
        for number, path in found:
            if number in known:
                opened.append((number, known.pop(number)))
            else:
                environment = WatchedEnvironment(
                    self._directory, path, max_bytes=self._map_bytes, durable=False, alone=alone
                )
                opened.append((number, environment))
        with self._lock:
            self._open = opened
            for environment in known.values():
                environment.drop()


def _name(number: int) -> str:
    return f"predictions-{number:06d}"


def _scan(path: Path) -> list[tuple[int, Path]]:
    """Generations on disk, newest first."""
    found = ((_NAME.fullmatch(child.name), child) for child in path.iterdir())
    return sorted(((int(match[1]), child) for match, child in found if match), reverse=True)
