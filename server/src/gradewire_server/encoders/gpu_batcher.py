"""A batcher for one model on a GPU, which gathers texts while the GPU is busy."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final, Protocol, TypeVar

from typing_extensions import override

from gradewire_server.domain.caller import Lane
from gradewire_server.domain.items import Failure
from gradewire_server.encoders.batcher import (
    JobQueue,
    JobT,
    JobT_contra,
    Queued,
    ResultT,
    ResultT_co,
    RunError,
    end,
    finish,
)
from gradewire_server.encoders.cuda import BucketSession, GpuOutput
from gradewire_server.encoders.encoder import Encoded, RunOutput, RunReader, token_ids
from gradewire_server.encoders.pending import PendingText
from gradewire_server.encoders.prometheus import ModelTelemetry
from gradewire_server.settings.engine import ComputeConfig

_log = logging.getLogger(__name__)

OutputT = TypeVar("OutputT")

_COMPUTED_AT_ONCE: Final = 2
"""The number of batches of a lane that compute: one on the GPU and, if the queue fills a batch, the next one."""
_IN_FLIGHT: Final = 4
"""The number of batches of a lane that compute or whose output is read."""
_DELIVERED_AT_ONCE: Final = 128
"""The number of texts that the event loop handles before other calls have a turn. They take one or two milliseconds."""
CLOSE_S: Final = 5.0
"""Seconds after which closing no longer waits for a run, which may never end."""


class GpuRuns(Protocol[JobT_contra, OutputT, ResultT_co]):
    """A model on a GPU. Worker threads call its methods."""

    def compute(self, jobs: Sequence[JobT_contra], /, *, urgent: bool) -> OutputT:
        """Compute a batch on the GPU. If `urgent` is True, it goes before batches that are not urgent."""

    def read(self, jobs: Sequence[JobT_contra], output: OutputT, /) -> Iterator[Sequence[ResultT_co]]:
        """Yield one result per job, some at a time and in order, while the GPU may compute the next batch."""

    def end_if_hung(self, after_s: float, /) -> None:
        """Fail all running batches if the GPU's current run has taken longer than `after_s`."""


class GpuBatcher(JobQueue[JobT, ResultT]):
    """A queue whose batches run on a GPU. For one event loop only.

    The lanes have batches of their own. A job starts at once if the GPU computes no batch of its lane. Otherwise jobs
    gather until that batch ends, or until they fill a batch of `max_batch_tokens`, which is then prepared meanwhile.
    Interactive batches go before waiting runs of bulk batches, but bulk runs keep a share (`GpuThread`).
    """

    def __init__(self, runs: GpuRuns[JobT, OutputT, ResultT], compute: ComputeConfig, *, name: str) -> None:
        super().__init__(compute.max_queue_tokens)
        # The output's type is known only here, so the two steps are joined to one function.
        self._work = partial(self._work_with, runs)
        self._end_if_hung = runs.end_if_hung
        self._compute = compute
        self._computing = dict.fromkeys(Lane, 0)
        self._in_flight = dict.fromkeys(Lane, 0)
        # These threads run Python, so they keep their priority: a thread that waits for a core would keep the lock.
        self._pool = ThreadPoolExecutor(len(Lane) * _IN_FLIGHT, thread_name_prefix=f"encode-{name}")

    @override
    async def close(self, reason: Failure) -> None:
        """Fail queued jobs with `reason`, and wait for running jobs. A run of `CLOSE_S` or longer counts as hung."""
        self._closed = reason
        end(self._queue.drain(), RunError(reason))
        closing = asyncio.ensure_future(asyncio.to_thread(self._pool.shutdown))
        while not closing.done():
            await asyncio.wait((closing,), timeout=CLOSE_S)
            self._end_if_hung(CLOSE_S)
        closing.result()
        # Let the event loop deliver the last runs' results.
        await asyncio.sleep(0)

    @override
    def _dispatch(self) -> None:
        for lane in Lane:
            while self._may_start(lane) and (batch := self._take_from(lane)):
                self._computing[lane] += 1
                self._in_flight[lane] += 1
                self._pool.submit(self._work, batch, lane)

    def _may_start(self, lane: Lane) -> bool:
        queue = self._queue.lane(lane)
        computing = self._computing[lane]
        if not queue.jobs or self._in_flight[lane] >= _IN_FLIGHT or computing >= _COMPUTED_AT_ONCE:
            return False
        return not computing or self._fills_batch(lane)

    def _fills_batch(self, lane: Lane) -> bool:
        queue = self._queue.lane(lane)
        return queue.tokens >= self._compute.max_batch_tokens or queue.jobs >= self._compute.max_batch_texts

    def _take_from(self, lane: Lane) -> list[Queued[JobT, ResultT]]:
        now_s = self._loop.time()
        taken, dropped = self._queue.lane(lane).take(
            max_tokens=self._compute.max_batch_tokens,
            max_jobs=self._compute.max_batch_texts,
            wanted=lambda queued: queued.is_wanted(now_s),
        )
        end(dropped)
        return taken

    def _work_with(
        self, runs: GpuRuns[JobT, OutputT, ResultT], batch: Sequence[Queued[JobT, ResultT]], lane: Lane
    ) -> None:
        jobs = [each.job for each in batch]
        start_ns = time.time_ns()
        has_computed = False
        read = 0
        deliver: Callable[[], None] | None = None
        try:
            output = runs.compute(jobs, urgent=lane is Lane.INTERACTIVE)
            has_computed = True
            self._loop.call_soon_threadsafe(self._output_is_there, lane)
            # Deliver some jobs at a time, because the event loop handles other calls in between. The last ones are
            # delivered with the end of the batch, because each message to the event loop may wake it up.
            for results in runs.read(jobs, output):
                if deliver is not None:
                    self._loop.call_soon_threadsafe(deliver)
                some = batch[read : read + len(results)]
                read += len(some)
                deliver = partial(finish, some, results, start_ns, time.time_ns())
        except Exception as error:  # noqa: BLE001 - any error becomes these texts' failure
            if not isinstance(error, RunError):
                _log.exception("cannot encode a batch of %d texts", len(batch))
            if deliver is not None:
                self._loop.call_soon_threadsafe(deliver)
            deliver = partial(end, batch[read:], error)
        self._loop.call_soon_threadsafe(self._ended, lane, deliver, has_computed)

    def _output_is_there(self, lane: Lane) -> None:
        self._computing[lane] -= 1
        self._dispatch()

    def _ended(self, lane: Lane, deliver: Callable[[], None] | None, has_computed: bool) -> None:  # noqa: FBT001 - a loop passes no keywords
        self._in_flight[lane] -= 1
        if not has_computed:
            self._computing[lane] -= 1
        self._dispatch()  # first, so that the GPU has work again
        if deliver is not None:
            deliver()


class EncoderRuns:
    """An encoder's or a grader's runs on a GPU. Thread-safe."""

    def __init__(self, session: BucketSession, reader: RunReader, telemetry: ModelTelemetry) -> None:
        self._session = session
        self._reader = reader
        self._telemetry = telemetry
        self.end_if_hung = session.end_if_hung

    def compute(self, jobs: Sequence[PendingText], /, *, urgent: bool) -> tuple[GpuOutput, float]:
        """Compute a batch; return its output and its start in `time.monotonic()` seconds."""
        began_s = time.monotonic()
        layers = self._reader.layers_for(jobs)
        output = self._session.run_in_turn(token_ids(jobs), layers=layers, urgent=urgent)
        took_s = time.monotonic() - began_s
        self._telemetry.ran(jobs, padded_tokens=output.padded_tokens, began_s=began_s, duration_s=took_s)
        return output, began_s

    def read(self, jobs: Sequence[PendingText], output: tuple[GpuOutput, float], /) -> Iterator[list[Encoded]]:
        """Yield the texts' vectors, or the failures of texts that do not fit into the GPU's memory."""
        found, began_s = output
        row = 0
        for start in range(0, len(jobs), _DELIVERED_AT_ONCE):
            some = jobs[start : start + _DELIVERED_AT_ONCE]
            counts = [len(token_ids([text])) for text in some]  # a grader reads a long text in pieces
            rows = slice(row, row + sum(counts))
            tokens = {layer: vectors[rows] for layer, vectors in found.vectors.tokens.items()}
            results = self._reader.make_blobs(some, RunOutput(found.vectors.sentences[rows], tokens))
            for index, count in enumerate(counts):
                failures = [found.failures[each] for each in range(row, row + count) if each in found.failures]
                row += count
                if failures:
                    results[index] = failures[0]
            yield [Encoded(each, began_s=began_s) for each in results]
