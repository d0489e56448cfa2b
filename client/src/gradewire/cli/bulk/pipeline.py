"""Readers and workers as a pipeline of Ray Data: a part is a block, and few blocks are on their way."""

from __future__ import annotations

import functools
import logging
import pickle
from typing import TYPE_CHECKING, Any, Final

from gradewire.cli.bulk.reading import FileEnd, PartRows
from gradewire.cli.bulk.worker import PartScorer
from gradewire.cli.problems import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gradewire.cli.bulk.parts import PartStore
    from gradewire.cli.bulk.reading import FileReader
    from gradewire.cli.bulk.records import PartRecord
    from gradewire.cli.bulk.worker import WorkerSetup

_PARTS_AT_ONCE: Final = 2
"""Of a worker: while the last requests of a part are answered, those of the next are sent."""
_BLOCK_BYTES: Final = 1
"""Ray Data ends a block when it is as large: every part is a block of its own, and goes on when it is read."""
_START_DEATHS: Final = 4
"""Of workers, in a row, before they are up: Ray loses some where a cluster is very busy. Nothing of ours is done until
then, so this hides no error."""


class RayWorker:
    """What an actor runs: `PartScorer`, on the columns of Ray Data."""

    def __init__(self, setup: WorkerSetup) -> None:
        self._scorer = PartScorer(setup)

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        """Scores the parts of a batch: what is in the column `item`, pickled, becomes a record or stays an end."""
        return {"item": [self._scored(data) for data in batch["item"]]}

    def _scored(self, data: bytes) -> bytes:
        item: PartRows | FileEnd = pickle.loads(data)  # noqa: S301 - our own reader's
        return data if isinstance(item, FileEnd) else pickle.dumps(self._scorer.score(item))


def _blocks(reader: FileReader, store: PartStore) -> Iterator[Any]:
    import pyarrow as pa  # noqa: PLC0415 - of the extra

    for item in reader.read():
        if store.is_stopping():
            return
        yield pa.table({"item": pa.array([pickle.dumps(item)], pa.large_binary())})


def run_parts(
    ray: Any, readers: Sequence[FileReader], setup: WorkerSetup, *, workers: int, cores_per_worker: float
) -> Iterator[PartRecord | FileEnd]:
    """Scores all parts that the readers give, in any order; an end may come before parts of its file.

    Args:
        ray: The module, connected.
        readers: One for each file; as many read side by side as there are workers.
        setup: What workers are made with.
        workers: Actors.
        cores_per_worker: What each reserves.

    Raises:
        InputError: A file cannot be read, or Ray gives up.
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
        # Actors begin first and may reserve every core of a cluster: a reader that wants one would never begin (issue
        # 44687 of Ray). It takes little of one, and waits where workers are behind.
        num_cpus=0,
        # Without cores nothing else bounds them, and each is a process.
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
            yield pickle.loads(row["item"])  # noqa: S301 - our own worker's
    except ray.exceptions.RayError as error:
        raise InputError(_reason(error)) from error


def _reason(error: Exception) -> str:
    cause = getattr(error, "cause", None) or error
    return str(cause).strip().splitlines()[-1] if str(cause).strip() else type(cause).__name__


def _source_of(readers: Sequence[FileReader], store: PartStore) -> Any:
    """The readers as a datasource; a class of Ray's is there to be derived from only once Ray is imported."""
    from ray.data.block import BlockMetadata  # noqa: PLC0415 - of the extra
    from ray.data.datasource import Datasource, ReadTask  # noqa: PLC0415 - of the extra

    class PartSource(Datasource):  # type: ignore[misc] # without Ray it has no type
        def get_read_tasks(self, parallelism: int, *_: Any, **__: Any) -> list[Any]:
            del parallelism  # a file has one reader
            unknown = BlockMetadata(num_rows=None, size_bytes=None, exec_stats=None, input_files=None)
            return [ReadTask(functools.partial(_blocks, reader, store), unknown) for reader in readers]

        def estimate_inmemory_data_size(self) -> int | None:
            return None

    return PartSource()
