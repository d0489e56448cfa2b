"""Vectors on this machine's disk: predictions in two generations, references in a separate map.

When the newer generation is full, the store removes the older generation.
"""

import asyncio
import contextlib
import logging
import re
import shutil
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, TypeVar

import lmdb
from typing_extensions import override

from gradewire_server.domain.needs import AnswerSource, Tier
from gradewire_server.loop_turns import give_way
from gradewire_server.settings.engine import DiskConfig
from gradewire_server.storage.cache import CHUNK_KEYS, SecondLevel, StorageTelemetry, Write
from gradewire_server.storage.codec import EntryKind, Stored, unpack
from gradewire_server.storage.lmdb_environment import StoreDirectory, TruncatedError, WatchedEnvironment

_log = logging.getLogger(__name__)
T = TypeVar("T")

_STORE: Final = "disk"
_KEPT: Final = 2
"""Number of generations to keep."""
_MOST_ROTATIONS: Final = 4
_GENERATION: Final = re.compile(r"predictions-(\d{6,})")
_MAX_COPIED_BYTES: Final = 1 << 20
"""Maximum number of bytes that the next write copies from the older to the newer generation."""
_PAUSE_AFTER_FAILED_WRITE_S: Final = 10.0


class Generations:
    """A directory's generations that this process has opened. The methods raise the errors of `open_environment`.

    `read` and `write` may run on two threads. If another process has removed an open generation, this process uses the
    generation until this process's map is full. `max_bytes` limits all generations together.
    """

    def __init__(self, directory: StoreDirectory, *, max_bytes: int) -> None:
        self._directory = directory
        self._map_bytes = max_bytes // _KEPT
        self._lock = threading.Lock()  # guards the dict below and the closing of its environments, but never a write
        self._open: dict[int, WatchedEnvironment] = {}  # newest first
        with directory.rotating():
            self._adopt()

    def read(self, keys: Sequence[bytes]) -> tuple[list[bytes | None], list[int]]:
        """Return each key's value (or None), and the positions of the values that an older generation contains.

        Raises:
            TruncatedError: A file has shrunk.
            lmdb.Error: A map misbehaves.
        """
        values: list[bytes | None] = [None] * len(keys)
        older: list[int] = []
        with self._lock:
            missing = list(range(len(keys)))
            for age, environment in enumerate(self._open.values()):
                if not missing:
                    break
                with environment.reading() as transaction:
                    get = transaction.get
                    for position in missing:
                        values[position] = get(keys[position])
                if age:
                    older += [position for position in missing if values[position] is not None]
                missing = [position for position in missing if values[position] is None]
        return values, older

    def write(self, values: Mapping[bytes, bytes]) -> None:
        """Store values in the newest generation. If the generation is full, create a new generation.

        Raises:
            OSError: A new generation cannot be created.
            lmdb.Error: A map misbehaves, or an empty map is too small for all values together.
        """
        for _ in range(_MOST_ROTATIONS):
            try:
                self._put(values)
            except (lmdb.MapFullError, lmdb.MapResizedError):
                self._rotate()  # perhaps into another process's generation, which may also be full
            else:
                return
        self._put(values)

    def close(self, *, suspect: bool) -> None:
        """Close all maps. Set `suspect` if a map misbehaved."""
        with self._lock:
            for environment in self._open.values():
                environment.close(suspect=suspect)
            self._open = {}

    def _put(self, values: Mapping[bytes, bytes]) -> None:
        newest = next(iter(self._open.values()))
        with newest.on_writer(write=True) as transaction:
            transaction.cursor().putmulti(values.items())

    def _rotate(self) -> None:
        with self._directory.rotating():
            found = _scan(self._directory.path)
            mine = next(iter(self._open))
            newest = max([mine, *(number for number, _ in found)])
            if newest == mine:  # if not, another process has already rotated
                (self._directory.path / _name(newest + 1)).mkdir(exist_ok=True)
            for _, path in _scan(self._directory.path)[_KEPT:]:
                shutil.rmtree(path)
            self._adopt()

    def _adopt(self) -> None:
        """Open the current generations, and close older generations."""
        found = _scan(self._directory.path)[:_KEPT] or [(1, self._directory.path / _name(1))]
        known, opened = dict(self._open), {}
        for number, path in found:
            if number in known:
                opened[number] = known.pop(number)
            else:
                opened[number] = WatchedEnvironment(self._directory, path, max_bytes=self._map_bytes, durable=False)
        with self._lock:
            self._open = opened
            for environment in known.values():
                environment.drop()


def _name(number: int) -> str:
    return f"predictions-{number:06d}"


def _scan(path: Path) -> list[tuple[int, Path]]:
    """Return the generations on disk, newest first."""
    found = ((_GENERATION.fullmatch(child.name), child) for child in path.iterdir())
    return sorted(((int(match[1]), child) for match, child in found if match), reverse=True)


class DiskVectors(SecondLevel):
    """A second level in LMDB maps. Processes may share its directory. It raises the same errors as `open_environment`.

    Close this store before `directory`. `clock` must return Unix seconds, because a value's expiry must survive
    restarts and be the same for all processes.
    """

    source = AnswerSource.DISK

    def __init__(
        self,
        directory: StoreDirectory,
        config: DiskConfig,
        telemetry: StorageTelemetry,
        *,
        prediction_ttl_s: int,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._directory = directory
        self._telemetry = telemetry
        self._rejected = telemetry.store_rejected.labels(_STORE)
        self._prediction_ttl_s = prediction_ttl_s
        self._clock = clock
        self._references = WatchedEnvironment(
            directory,
            directory.path / "references",
            max_bytes=config.reference_max_bytes or config.max_bytes,
            durable=False,
        )
        self._references_full = False
        self._generations = Generations(directory, max_bytes=config.max_bytes)
        self._writing = ThreadPoolExecutor(1, thread_name_prefix="disk-write")
        self._broken = ""
        self._rebuilding: set[WatchedEnvironment] = set()
        self._no_writes_before_s = 0.0
        self._copy_forward: dict[bytes, bytes] = {}
        self._copied_bytes = 0

    @property
    @override
    def available(self) -> bool:
        return not self._broken and self._directory.ours and time.monotonic() >= self._no_writes_before_s

    @override
    async def read(
        self, keys: Sequence[bytes], dims: int, *, kind: EntryKind = EntryKind.SENTENCE
    ) -> list[bytes | None]:
        blobs: list[bytes | None] = []
        for start in range(0, len(keys), CHUNK_KEYS[kind]):
            if start:
                await give_way()
            if self._broken or not self._directory.ours:
                break
            chunk = keys[start : start + CHUNK_KEYS[kind]]
            found: list[bytes | None] = [None] * len(chunk)
            try:
                # A process with a larger limit may have grown the file beyond our map. Count this as a miss.
                with self._telemetry.timed(_STORE, "read"), contextlib.suppress(lmdb.MapResizedError):
                    found = self._read(chunk, dims, kind)
            except TruncatedError as error:
                self._rebuild_soon(error.environment)
                break
            except lmdb.Error as error:
                self._misbehaved(error)
                break
            blobs += found
        return blobs + [None] * (len(keys) - len(blobs))

    @override
    async def write(self, writes: Sequence[Write]) -> int:
        if not self.available:
            return 0
        forward, self._copy_forward, self._copied_bytes = self._copy_forward, {}, 0
        try:
            with self._telemetry.timed(_STORE, "write"):
                await asyncio.get_running_loop().run_in_executor(self._writing, self._write, writes, forward)
        except (lmdb.Error, OSError) as error:
            self._no_writes_before_s = time.monotonic() + _PAUSE_AFTER_FAILED_WRITE_S
            _log.warning("Writing to %s failed: %s", self._directory.path, error)
            return 0
        return len(writes)

    @override
    def degraded(self) -> str:
        if self._broken or not self._directory.ours:
            return f"disk: {self._broken or 'opened before a fork'}"
        return "" if self.available else "disk: writing fails"

    @override
    async def close(self) -> None:
        if not self._directory.ours:
            return
        await asyncio.to_thread(self._writing.shutdown)
        self._references.close(suspect=bool(self._broken))
        self._generations.close(suspect=bool(self._broken))

    def _read(self, keys: Sequence[bytes], dims: int, kind: EntryKind) -> list[bytes | None]:
        with self._references.reading() as transaction:
            values = [transaction.get(key) for key in keys]
        stored = [
            None if value is None else self._unpack(key, value, dims, kind)
            for key, value in zip(keys, values, strict=True)
        ]
        missing = [position for position, entry in enumerate(stored) if entry is None]
        if missing:
            found, older = self._generations.read([keys[position] for position in missing])
            for position, value in zip(missing, found, strict=True):
                if value is not None:
                    stored[position] = self._unpack(keys[position], value, dims, kind)
            for index in older:
                value = found[index]
                if value is not None and stored[missing[index]] is not None:
                    self._copy(keys[missing[index]], value)
        return [None if entry is None else entry.blob for entry in stored]

    def _copy(self, key: bytes, value: bytes) -> None:
        if self._copied_bytes < _MAX_COPIED_BYTES:
            self._copy_forward[key] = value
            self._copied_bytes += len(value)

    def _unpack(self, key: bytes, value: bytes, dims: int, kind: EntryKind) -> Stored | None:
        stored = unpack(key, value, dims, kind=kind)
        if stored is None:
            self._rejected.inc()
        elif 0 < stored.expires_unix_s <= self._clock():
            return None
        return stored

    def _write(self, writes: Sequence[Write], forward: dict[bytes, bytes]) -> None:
        try:
            self._write_once(writes, forward)
        except TruncatedError as error:
            self._rebuild(error.environment)
            self._write_once(writes, forward)

    def _write_once(self, writes: Sequence[Write], forward: dict[bytes, bytes]) -> None:
        expires_unix_s = int(self._clock()) + self._prediction_ttl_s
        references = {w.key: w.packed(0) for w in writes if w.tier is Tier.REFERENCE}
        predictions = {w.key: w.packed(expires_unix_s) for w in writes if w.tier is not Tier.REFERENCE}
        if references and not self._references_full:
            try:
                with self._references.on_writer(write=True) as transaction:
                    transaction.cursor().putmulti(references.items())
                references = {}
            except lmdb.MapFullError:
                self._references_full = True
                _log.warning("The map for references is full; new references are stored with the predictions")
        values = forward | predictions | references
        if values:
            self._generations.write(values)

    def _rebuild_soon(self, environment: WatchedEnvironment) -> None:
        """Let the writer's thread rebuild an environment. Until then, reads from the environment are misses."""
        if environment not in self._rebuilding:
            self._rebuilding.add(environment)
            done = asyncio.get_running_loop().run_in_executor(self._writing, self._rebuild, environment)
            done.add_done_callback(lambda done: self._rebuilt(environment, done))

    def _rebuild(self, environment: WatchedEnvironment) -> None:
        environment.rebuild()
        if environment is self._references:
            self._references_full = False

    def _rebuilt(self, environment: WatchedEnvironment, done: asyncio.Future[None]) -> None:
        self._rebuilding.discard(environment)
        if not done.cancelled() and (error := done.exception()) is not None:
            self._misbehaved(error)

    def _misbehaved(self, error: BaseException) -> None:
        self._broken = f"{type(error).__name__}, switched off until the next start"
        _log.warning("%s misbehaves (%s); continuing without it", self._directory.path, error)
