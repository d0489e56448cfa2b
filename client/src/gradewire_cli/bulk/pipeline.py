"""Run readers and workers as a Ray Data pipeline."""

from __future__ import annotations

import contextlib
import functools
import itertools
import logging
import os
import pickle
import re
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from gradewire_cli.bulk.parts import PartId, PartRows, PartStore
from gradewire_cli.bulk.worker import PartRecord, PartScorer, WorkerSetup, absolute_name
from gradewire_cli.problems import InputError, UnreachableError
from gradewire_cli.rows.row import with_picture_digests

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from collections.abc import Set as AbstractSet
    from pathlib import Path

    from gradewire_cli.rows.input_file import InputFile


_OBJECT_STORE_BYTES: Final = 256 << 20
"""Size of a local Ray's object store. It has room for a few parts of about a megabyte."""
_HOST_PORT: Final = re.compile(r"(?:ray://)?\[?(?P<host>[^\]/]+?)\]?:(?P<port>\d+)")
_CONNECT_TIMEOUT_S: Final = 10.0
_START_TRIES: Final = 3
_AUTH_MODE: Final = "RAY_AUTH_MODE"


def _check_connection(address: str) -> None:
    """Raise UnreachableError if a HOST:PORT accepts no connections. Ray itself would retry for minutes."""
    if (found := _HOST_PORT.fullmatch(address)) is None:
        return
    try:
        socket.create_connection((found["host"], int(found["port"])), timeout=_CONNECT_TIMEOUT_S).close()
    except OSError as error:
        raise UnreachableError(
            f"--ray-address {address}: no Ray cluster answers ({error.strerror or error})"
        ) from error


def import_ray() -> Any:
    """Import and return Ray; raise InputError if the extra is not installed."""
    # Ray must not send usage reports to its developers.
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    # Keep Ray's output out of the progress lines.
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    # Silence a warning about a future change for programs with GPUs.
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        import ray  # noqa: PLC0415 - optional
        import ray.data  # noqa: PLC0415 - as above
    except ImportError as error:
        raise InputError(f"bulk needs {error.name}. Run: pip install 'gradewire[ray]'") from error
    return ray


def _init(ray: Any, address: str, settings: dict[str, Any]) -> None:
    """Connect to Ray or start Ray. Retry, because Ray's node may start too slowly on a busy machine."""
    for tries_left in reversed(range(_START_TRIES)):
        try:
            ray.init(address=address, **settings)
        except Exception as error:
            # Ray raises a bare Exception only for this timeout.
            if type(error) is not Exception or not tries_left:
                raise
            ray.shutdown()
        else:
            return


def cores_by_machine(ray: Any) -> list[int]:
    """Return each machine's number of cores, or [1] if no machine runs yet."""
    cores = (int(machine["Resources"].get("CPU", 0)) for machine in ray.nodes() if machine["Alive"])
    return [each for each in cores if each] or [1]


@contextlib.contextmanager
def ray_session(address: str | None, cores: int) -> Iterator[Any]:
    """Connect to a cluster, or start a local Ray with `cores` cores, and yield the module `ray`.

    Raises:
        InputError: Ray is not installed or cannot be started.
        UnreachableError: No cluster answers at the address.
    """
    ray = import_ray()
    if address is not None:
        _check_connection(address)
    settings: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if address is None:
        settings |= {"num_cpus": cores, "include_dashboard": False, "object_store_memory": _OBJECT_STORE_BYTES}
    try:
        _init(ray, "local" if address is None else address, settings)
    except ConnectionError as error:
        # Ray sends the user's token to this address only if the mode is set.
        hint = "" if _AUTH_MODE in os.environ else f". If the cluster needs Ray's token, set {_AUTH_MODE}=token"
        raise UnreachableError(f"--ray-address {address}: {error}{hint}") from error
    except Exception as error:
        raise InputError(f"Ray cannot be started: {error}") from error
    try:
        yield ray
    finally:
        ray.shutdown()


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEnd:
    """The end of an input file, with the file's index and its numbers of parts and rows."""

    file: int
    parts: int
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FileReader:
    """A reader of one input file.

    Attributes:
        rows_before: Number of rows in earlier files.
        done: Indices of finished parts.
        pictures: Folder with the rows' pictures, or None if no metric uses pictures.
    """

    source: InputFile
    file: int
    path_or_url: str
    rows_before: int
    part_rows: int
    done: AbstractSet[int]
    pictures: Path | None = None

    def read(self) -> Iterator[PartRows | FileEnd]:
        """Yield the unfinished parts in order, then the file's end; raise InputError on failure."""
        opened = self.source.open_file(self.file, self.rows_before, self.path_or_url)
        remaining = iter(with_picture_digests(opened.rows, self.pictures))
        rows = 0
        for number in itertools.count():
            part = list(itertools.islice(remaining, self.part_rows))
            if not part:
                yield FileEnd(file=self.file, parts=number, rows=rows)
                return
            rows += len(part)
            if number not in self.done:
                yield PartRows(part=PartId(self.file, number), rows=part)


def file_readers(
    source: InputFile, rows_by_file: list[int], part_rows: int, found: dict[PartId, bool], pictures: Path | None
) -> list[FileReader]:
    """Return one reader for each file. The readers skip the answered parts in `found`."""
    return [
        FileReader(
            source=source,
            file=file,
            path_or_url=absolute_name(source.paths[file]),
            rows_before=before,
            part_rows=part_rows,
            done=frozenset(part.number for part, answered in found.items() if answered and part.file == file),
            pictures=pictures and pictures.absolute(),
        )
        for file, before in enumerate(itertools.accumulate(rows_by_file[:-1], initial=0))
    ]


_PARTS_AT_ONCE: Final = 2
_BLOCK_BYTES: Final = 1
"""Block size, so small that Ray Data forwards every part immediately."""
_START_DEATHS: Final = 4
"""Maximum number of consecutive worker deaths at start. A busy cluster loses some workers before our code runs."""


class RayWorker:
    """A Ray actor that runs a `PartScorer` on Ray Data's batches."""

    def __init__(self, setup: WorkerSetup) -> None:
        self._scorer = PartScorer(setup)

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        """Turn pickled `PartRows` into pickled `PartRecord`s. Keep each `FileEnd`."""
        return {"item": [self._scored(data) for data in batch["item"]]}

    def _scored(self, data: bytes) -> bytes:
        item: PartRows | FileEnd = pickle.loads(data)  # noqa: S301 - pickled by our own reader
        return data if isinstance(item, FileEnd) else pickle.dumps(self._scorer.score(item))


def _blocks(reader: FileReader, store: PartStore) -> Iterator[Any]:
    import pyarrow as pa  # noqa: PLC0415 - in the extra

    for item in reader.read():
        if store.is_stopping():
            return
        yield pa.table({"item": pa.array([pickle.dumps(item)], pa.large_binary())})


def run_parts(
    ray: Any, readers: Sequence[FileReader], setup: WorkerSetup, *, workers: int, cores_per_worker: float
) -> Iterator[PartRecord | FileEnd]:
    """Score all parts, in any order. Yield records and files' ends. A file's end may come before its parts.

    Raises:
        InputError: A file cannot be read, or Ray fails.
    """
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    context.target_max_block_size = _BLOCK_BYTES
    context.target_min_block_size = _BLOCK_BYTES
    context.max_consecutive_actor_init_deaths = _START_DEATHS
    for name in ("ray.data", "ray"):
        logging.getLogger(name).setLevel(logging.ERROR)
    data = ray.data.read_datasource(
        _source_of(readers, setup.store),
        override_num_blocks=len(readers),
        # Actors start first and may reserve every core. A reader that needs a reserved core would then never start (Ray
        # issue 44687).
        num_cpus=0,
        # limits the number of reader processes
        concurrency=min(workers, len(readers)),
    )
    scored = data.map_batches(
        RayWorker,
        fn_constructor_args=(setup,),
        batch_size=1,
        num_cpus=cores_per_worker,
        compute=ray.data.ActorPoolStrategy(
            size=workers,
            max_tasks_in_flight_per_actor=_PARTS_AT_ONCE + 1,
            max_concurrent_calls_per_actor=_PARTS_AT_ONCE,
            enable_true_multi_threading=True,
        ),
    )
    try:
        for row in scored.iter_rows():
            yield pickle.loads(row["item"])  # noqa: S301 - pickled by our own worker
    except ray.exceptions.RayError as error:
        raise InputError(_reason(error)) from error


def _reason(error: Exception) -> str:
    cause = getattr(error, "cause", None) or error
    return str(cause).strip().splitlines()[-1] if str(cause).strip() else type(cause).__name__


def _source_of(readers: Sequence[FileReader], store: PartStore) -> Any:
    from ray.data.block import BlockMetadata  # noqa: PLC0415 - in the extra
    from ray.data.datasource import Datasource, ReadTask  # noqa: PLC0415 - in the extra

    class PartSource(Datasource):  # type: ignore[misc] # untyped without Ray
        def get_read_tasks(self, parallelism: int, *_: Any, **__: Any) -> list[Any]:
            del parallelism
            unknown = BlockMetadata(num_rows=None, size_bytes=None, exec_stats=None, input_files=None)
            return [ReadTask(functools.partial(_blocks, reader, store), unknown) for reader in readers]

        def estimate_inmemory_data_size(self) -> int | None:
            return None

    return PartSource()
