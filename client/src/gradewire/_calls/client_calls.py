"""The calls of a client in one process, with the client's transport and submissions."""

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Any, TypeVar

from gradewire._calls.compare import PairRows
from gradewire._calls.prepare import Preparation, PrepareCallback
from gradewire._calls.requests import Batch, Deadline, M, ProgressCallback, R, Rows
from gradewire._calls.retries import Retries, until_answered
from gradewire._calls.score import ItemRows, check_streamed, decode_model_list
from gradewire._calls.stream import RowStream
from gradewire._calls.submit import Submissions, SubmitCallback, SubmitLimits
from gradewire._fork_safety import check_grpc_usable, forget_in_children, keep_for_good
from gradewire._tracing import call_trace
from gradewire.errors import ClientClosed
from gradewire.items import ItemLike, ItemsLike
from gradewire.metrics.choice import MetricChoice
from gradewire.options import CallOptions, check_deadline, check_generate, check_progress, check_timeout, usual_metrics
from gradewire.pairs import Comparison, PairLike
from gradewire.references import PrepareReport, ReferenceEntryLike
from gradewire.results import ItemScores, Limits, ModelList, ScoreReport
from gradewire.transport import LIST_MODELS, Endpoint, Transport
from gradewire_proto.tracing.spans import CLIENT_COMPARE, CLIENT_PREPARE, CLIENT_SCORE, ITEMS
from gradewire_proto.v1 import models_pb2

S = TypeVar("S", bound=RowStream[Any, Any])

_log = logging.getLogger("gradewire.metrics")

PREPARE_DEADLINE_S = 3600.0
GENERATE_DEADLINE_S = 24 * 3600.0
"""Default deadline of `prepare` with `generate`. A judge on a CPU writes only one or two sentences per second."""
JUDGE_DEADLINE_S = 3600.0
"""Default deadline of a call with a judge. A judge needs a second or more per item."""
JUDGE_STALL_S = 600.0
LIST_S = 60.0
DRAIN_S = 60.0


def connect(carrier: Transport | Endpoint) -> Transport:
    """Return a transport to the server. Import gRPC only if needed, because the import is slow.

    Raises:
        ForkedClientError: This process was forked after gRPC was loaded, which breaks gRPC.
    """
    if not isinstance(carrier, Endpoint):
        return carrier
    check_grpc_usable()
    from gradewire._transports.grpc_transport import GrpcTransport  # noqa: PLC0415 - see the docstring

    return GrpcTransport(carrier)


class ClientCalls:
    def __init__(self, transport: Transport, deadline_s: float, submit_limits: SubmitLimits | None = None) -> None:
        self._transport = transport
        self._deadline_s = check_deadline(deadline_s)
        self._submissions = Submissions(submit_limits or SubmitLimits())
        self._limits: Limits | None = None
        self._listed: tuple[ModelList | None, float] = None, 0.0
        self._reported: set[str] = set()
        self.closed = False

    async def score(
        self, items: Sequence[ItemLike], options: CallOptions, progress: ProgressCallback | None = None
    ) -> ScoreReport:
        check_progress(progress)
        with call_trace(CLIENT_SCORE, lambda: {ITEMS: len(items)}) as trace:
            choice = await self._chosen(options)
            deadline = await self._judged_deadline(options.deadline_s, asks_judge=choice.asks_judge)
            rows = ItemRows(choice, options.priority)
            results = await self._run(rows, items, deadline, progress)
            trace.evaluated(items, results)
        return ScoreReport(tuple(results), choice.labels, rows.provenance)

    def stream(self, items: AsyncIterable[ItemLike], options: CallOptions) -> AsyncGenerator[list[ItemScores]]:
        """Check the arguments, then return a generator of result batches, which come in any order."""
        choice = self._choose(options)
        check_streamed(choice.specs)

        async def usual() -> ItemRows:
            return ItemRows(await self._chosen(options))

        rows = usual if options.metrics is None else ItemRows(choice)
        return self._stream(rows, items, options.deadline_s, asks_judge=choice.asks_judge)

    def _stream(
        self,
        rows: Rows[M, R] | Callable[[], Awaitable[Rows[M, R]]],
        given: AsyncIterable[Any],
        deadline_s: float | None,
        *,
        asks_judge: bool,
    ) -> AsyncGenerator[list[R]]:
        stall_s = max(self._deadline_s, JUDGE_STALL_S) if asks_judge else self._deadline_s
        if deadline_s is not None:
            stall_s = check_deadline(deadline_s)
        stream = RowStream(self._transport, rows, given, lambda: self._known_limits(Deadline(stall_s)), stall_s)
        return stream.run(self._notifying_on_close)

    def open_stream(
        self, make: Callable[[Transport, Callable[[], Awaitable[Limits]]], S]
    ) -> tuple[S, AsyncGenerator[list[Any]]]:
        """Return a new stream, built by `make`, and a generator of the stream's result batches."""
        self._check_open()
        stream = make(self._transport, lambda: self._known_limits(self._deadline(None)))
        return stream, stream.run(self._notifying_on_close)

    async def compare(
        self,
        pairs: Sequence[PairLike],
        rows: PairRows,
        progress: ProgressCallback | None,
    ) -> list[Comparison]:
        check_progress(progress)
        self._check_open()
        with call_trace(CLIENT_COMPARE, lambda: {ITEMS: len(pairs)}) as trace:
            deadline = await self._judged_deadline(rows.deadline_s, asks_judge=True)
            results = await self._run(rows, pairs, deadline, progress)
            trace.evaluated(pairs, results)
        return results

    def compare_stream(self, pairs: AsyncIterable[PairLike], rows: PairRows) -> AsyncGenerator[list[Comparison]]:
        """Check the arguments, then return a generator of comparison batches, which come in any order."""
        self._check_open()
        return self._stream(rows, pairs, rows.deadline_s, asks_judge=True)

    async def prepare(
        self,
        entries: Sequence[ReferenceEntryLike],
        options: CallOptions,
        progress: PrepareCallback | None,
        generate: object,
        *,
        immutable: bool = False,
    ) -> PrepareReport:
        check_progress(progress)
        generation = check_generate(generate)
        if generation is not None and options.defaults.synthetic is None:
            options = replace(options, defaults=replace(options.defaults, synthetic="prepared"))
        usual_s = PREPARE_DEADLINE_S if generation is None else GENERATE_DEADLINE_S
        deadline = self._deadline(usual_s if options.deadline_s is None else options.deadline_s)
        with call_trace(CLIENT_PREPARE, lambda: {ITEMS: len(entries)}), self._notifying_on_close():
            preparation = Preparation(self._transport, await self._chosen(options), entries, deadline, progress)
            if options.deadline_s is None:
                await self._find_server()
            return await preparation.run(lambda: self._known_limits(deadline), generation, immutable=immutable)

    def submit(
        self,
        loop: Callable[[], asyncio.AbstractEventLoop],
        items: ItemsLike,
        options: CallOptions,
        callback: SubmitCallback | None,
    ) -> Future[ScoreReport]:
        """Queue items for scoring. Any thread may call this method; `loop` returns the loop that runs the calls."""
        return self._submissions.add(
            loop, items, lambda taken: self.score(taken, options), callback, lambda: options.choose().shows_images
        )

    async def flush(self, timeout_s: float | None) -> bool:
        check_timeout(timeout_s)
        return await self._submissions.flush(timeout_s)

    async def models(self, deadline_s: float | None = None) -> ModelList:
        self._check_open()
        return await self._list(self._deadline(deadline_s))

    async def close(self) -> None:
        if not self.closed:
            await self._submissions.close(DRAIN_S)
            self.closed = True
            await self._transport.close()

    async def _run(
        self, rows: Rows[M, R], given: Sequence[Any], deadline: Deadline, progress: ProgressCallback | None
    ) -> list[R]:
        with self._notifying_on_close():
            batch = Batch(self._transport, rows, given, deadline, progress)
            return await batch.run(lambda: self._known_limits(deadline))

    async def _judged_deadline(self, deadline_s: float | None, *, asks_judge: bool) -> Deadline:
        """Return the call's deadline. Before using the long default for judges, check that a server answers."""
        if deadline_s is None and asks_judge:
            deadline_s = max(self._deadline_s, JUDGE_DEADLINE_S)
            await self._find_server()
        return self._deadline(deadline_s)

    def _check_open(self) -> None:
        if self.closed:
            raise ClientClosed("this client is closed: make a new one")

    @contextlib.contextmanager
    def _notifying_on_close(self) -> Iterator[None]:
        try:
            yield
        except (Exception, asyncio.CancelledError) as error:
            task = asyncio.current_task()
            if not self.closed or isinstance(error, ClientClosed) or (task is not None and task.cancelling()):
                raise
            raise ClientClosed("this client was closed during the call") from error

    def _choose(self, options: CallOptions) -> MetricChoice:
        self._check_open()
        return options.choose()

    async def _chosen(self, options: CallOptions) -> MetricChoice:
        choice = self._choose(options)
        return choice if options.metrics is not None else (await self._with_usual(options)).choose()

    async def _with_usual(self, options: CallOptions) -> CallOptions:
        listed, at_s = self._listed
        if listed is None or time.monotonic() - at_s > LIST_S:
            listed = await self._list(self._deadline(options.deadline_s))
        metrics, note = usual_metrics(listed, options.defaults.model)
        if note and note not in self._reported:
            self._reported.add(note)
            _log.warning("%s", note)
        return replace(options, metrics=metrics)

    def _deadline(self, deadline_s: float | None) -> Deadline:
        return Deadline(self._deadline_s if deadline_s is None else check_deadline(deadline_s))

    async def _find_server(self) -> None:
        await self._known_limits(self._deadline(None))

    async def _known_limits(self, deadline: Deadline) -> Limits:
        return self._limits if self._limits is not None else (await self._list(deadline)).limits

    async def _list(self, deadline: Deadline) -> ModelList:
        request = models_pb2.ListModelsRequest()
        with self._notifying_on_close():
            reply = await until_answered(
                lambda: self._transport.unary(LIST_MODELS, request, timeout_s=deadline.remaining_s()),
                Retries(deadline.left_s),
            )
        listed = decode_model_list(reply)
        self._limits = listed.limits
        self._listed = listed, time.monotonic()
        return listed


class ProcessCalls:
    """A client's `ClientCalls`. A process creates them at its first use of the client."""

    def __init__(self, make_calls: Callable[[], ClientCalls]) -> None:
        self._make_calls = make_calls
        self._calls: ClientCalls | None = None
        forget_in_children(self)

    def here(self) -> ClientCalls:
        if self._calls is None:
            self._calls = self._make_calls()
        return self._calls

    def forget(self) -> None:
        keep_for_good(self._calls)
        if self._calls is not None and not self._calls.closed:
            self._calls = None
