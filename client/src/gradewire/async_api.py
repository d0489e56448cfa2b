"""The client for the caller's event loop."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Iterable
from concurrent.futures import Future
from contextlib import aclosing
from dataclasses import dataclass
from typing import Self, TypeVar, Unpack

from gradewire._calls.client_calls import ClientCalls, ProcessCalls, connect
from gradewire._calls.compare import PairRows
from gradewire._calls.prepare import PrepareCallback
from gradewire._calls.requests import ProgressCallback
from gradewire._calls.submit import SubmitCallback, SubmitLimits
from gradewire.items import ItemLike, ItemsLike
from gradewire.metrics import ComparisonLike
from gradewire.metrics.choice import MetricsLike
from gradewire.options import (
    CallOptions,
    CompareOptions,
    PrepareOptions,
    ScoreOptions,
    check_deadline,
    rows_of,
)
from gradewire.pairs import Comparison, PairLike, PairsLike
from gradewire.references import EntriesLike, PrepareReport, SyntheticGeneration
from gradewire.results import ItemScores, ModelList, ScoreReport
from gradewire.transport import Endpoint, Tls, Transport

DEADLINE_S = 30.0
# Items of a plain iterable between two turns of the event loop.
_ITEMS_PER_TURN = 32

T = TypeVar("T")


class ClientBase:
    """The base class of both clients, with their settings. Subclasses start their calls in `_start`."""

    def __init__(  # noqa: PLR0913 - all optional and named
        self,
        address: str = "127.0.0.1:50051",
        *,
        deadline_s: float = DEADLINE_S,
        token: str | None = None,
        tls: Tls | None = None,
        connections: int = 0,
        transport: Transport | None = None,
        submit_limits: SubmitLimits | None = None,
    ) -> None:
        check_deadline(deadline_s)
        self.__setstate__(_Settings(transport or Endpoint(address, token, tls, connections), deadline_s, submit_limits))

    def __getstate__(self) -> "_Settings":
        return self._settings

    def __setstate__(self, settings: "_Settings") -> None:
        self._settings = settings
        self._start(settings.make_calls)

    def _start(self, make_calls: Callable[[], ClientCalls]) -> None:
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class _Settings:
    """The settings of a client, also its pickled form."""

    carrier: Transport | Endpoint
    deadline_s: float
    submit_limits: SubmitLimits | None

    def make_calls(self) -> ClientCalls:
        return ClientCalls(connect(self.carrier), self.deadline_s, self.submit_limits)


class AsyncClient(ClientBase):
    """A client that scores answers on a gradewire server, with the arguments and errors of `Client`."""

    def _start(self, make_calls: Callable[[], ClientCalls]) -> None:
        self._process_calls = ProcessCalls(make_calls)

    @property
    def _calls(self) -> ClientCalls:
        return self._process_calls.here()

    async def score(
        self,
        items: ItemsLike,
        metrics: MetricsLike | None = None,
        *,
        progress: ProgressCallback | None = None,
        **options: Unpack[ScoreOptions],
    ) -> ScoreReport:
        """Score items in order.

        Long lists are cut into requests, a few in flight at a time. An item that cannot be sent (wrong types, lone
        surrogates, too large) becomes INVALID_INPUT. If only some requests are answered, the items of the others are
        UNAVAILABLE or TIMEOUT.

        Args:
            items: Mappings with the keys of `Item` or other usual names, `Item`s, or a table with a row for each
                (pandas, polars, Arrow, a Hugging Face dataset).
            metrics: `"smile,sbert"`, `"smile:fast"`, metric identifiers, typed metrics, or a sequence of these. None:
                `"smile,correctness"`, or only smile, with a warning in the log, if the encoder has no fit.
            progress: Called with (finished items, all items) on the client's thread; an exception ends the call.
            **options: See `gradewire.options.ScoreOptions`: `preset`, `synthetic`, `model`, `judge`, `priority`,
                `reference_set`, `deadline_s` (for the whole call; default: the client's, or an hour with a judge).

        Raises:
            InvalidRequest: The message names the argument.
            GradewireError: No request was answered; the class says why.
        """
        rows = list(rows_of("items", items))
        call = CallOptions.of("AsyncClient.score", metrics, options)
        return await self._calls.score(rows, call, progress)

    def score_stream(
        self,
        items: ItemsLike | AsyncIterable[ItemLike],
        metrics: MetricsLike | None = None,
        **options: Unpack[ScoreOptions],
    ) -> AsyncGenerator[ItemScores]:
        """Score items from a stream and yield each when it is done, not in order: see its `index`.

        Reads at most 256 items ahead, so the source may be endless. After a break, a new stream resumes the unfinished
        items. A plain iterable is read on the event loop and must not block.

        Args:
            items: As in `score`; read while you take results.
            metrics: As in `score`.
            **options: As in `score`, but `deadline_s` is the longest wait for the next result while items are in
                progress (default: the client's, or ten minutes with a judge).

        Raises:
            InvalidRequest: At once; the message names the argument.
            GradewireError: During iteration; results already yielded are valid.
        """
        rows = items if isinstance(items, AsyncIterable) else _turns(rows_of("items", items))
        call = CallOptions.of("AsyncClient.score_stream", metrics, options)
        return _flatten(self._calls.stream(rows, call))

    async def compare(
        self,
        pairs: PairsLike,
        by: ComparisonLike = "compare",
        *,
        progress: ProgressCallback | None = None,
        **options: Unpack[CompareOptions],
    ) -> list[Comparison]:
        """Ask a judge for the better answer of each pair, in order.

        The judge sees each pair twice, with either answer first. A pair that cannot be sent becomes INVALID_INPUT;
        other failures are those of items in `score`.

        Args:
            pairs: `Pair`s, mappings with their keys, or a table with a row for each.
            by: `"compare"`, an identifier (`"compare?references=true&mode=reason"`), or a `Compare`.
            progress: As in `score`, for pairs.
            **options: See `gradewire.options.CompareOptions`: `judge`, `priority`, `deadline_s` (for the whole call;
                default: the client's, at least an hour).

        Raises:
            InvalidRequest: The message names the argument.
            GradewireError: No request was answered; the class says why.
        """
        taken = list(rows_of("pairs", pairs))
        rows = PairRows("AsyncClient.compare", by, options)
        return await self._calls.compare(taken, rows, progress)

    def compare_stream(
        self,
        pairs: PairsLike | AsyncIterable[PairLike],
        by: ComparisonLike = "compare",
        **options: Unpack[CompareOptions],
    ) -> AsyncGenerator[Comparison]:
        """Compare pairs from a stream and yield each when it is done, not in order: see its `index`.

        Reads ahead and resumes after a break, as `score_stream` does.

        Args:
            pairs: As in `compare`; read while you take comparisons.
            by: As in `compare`.
            **options: As in `compare`, but `deadline_s` is the longest wait for the next comparison while pairs are in
                progress (default: the client's, at least ten minutes).

        Raises:
            InvalidRequest: At once; the message names the argument.
            GradewireError: During iteration; comparisons already yielded are valid.
        """
        source = pairs if isinstance(pairs, AsyncIterable) else _turns(rows_of("pairs", pairs))
        rows = PairRows("AsyncClient.compare_stream", by, options)
        return _flatten(self._calls.compare_stream(source, rows))

    async def prepare(
        self,
        entries: EntriesLike,
        metrics: MetricsLike | None = None,
        *,
        generate: bool | str | SyntheticGeneration = False,
        immutable: bool = False,
        progress: PrepareCallback | None = None,
        **options: Unpack[PrepareOptions],
    ) -> PrepareReport:
        """Prepare references before answers arrive, and store synthetic answers for `synthetic="prepared"`.

        A repeated call computes nothing. After a break, call again to resume.

        Args:
            entries: Mappings with the keys of `ReferenceEntry`, `ReferenceEntry`s, a table as in `score`, or items.
            metrics: Metrics to prepare for, as in `score`.
            generate: Have a judge write a synthetic answer for each reference without one: True for the default judge,
                its name, or a `SyntheticGeneration`. The set keeps the answers, so each is written once.
            immutable: Freeze the set with exactly these entries; refused if it already has others. `report.pinned` is
                its name with its digest.
            progress: Called on the client's thread as entries are done; an exception ends the call.
            **options: See `gradewire.options.PrepareOptions`: `preset`, `synthetic` (default with a judge: prepared),
                `model`, `deadline_s` (for the whole call; default: an hour, because a large set takes long to encode,
                or a day with a judge).

        Raises:
            InvalidRequest: The message names the argument.
            GradewireError: The class says why; finished work is kept.
        """
        rows = list(rows_of("entries", entries))
        call = CallOptions.of("AsyncClient.prepare", metrics, options)
        return await self._calls.prepare(rows, call, progress, generate, immutable=immutable)

    def submit(
        self,
        items: ItemsLike,
        metrics: MetricsLike | None = None,
        *,
        callback: SubmitCallback | None = None,
        **options: Unpack[ScoreOptions],
    ) -> Future[ScoreReport]:
        """Score later: copy the items and return at once. Never blocks and never raises.

        The future carries all errors: Overloaded if more than `max_pending_items` or `max_pending_bytes` would be
        pending, InvalidRequest for wrong arguments. In async code: `await asyncio.wrap_future(client.submit(…))`.

        Args:
            items: As in `score`.
            metrics: As in `score`.
            callback: Called with the finished future, on a thread for callbacks; its exceptions are logged.
            **options: As in `score`; `deadline_s` starts when scoring starts.
        """
        call = CallOptions.of("AsyncClient.submit", metrics, options)
        return self._calls.submit(asyncio.get_running_loop, items, call, callback)

    async def flush(self, timeout_s: float | None = None) -> bool:
        """Wait until all submissions and their callbacks are done; return False after `timeout_s`.

        Do not call it from a callback of `submit`, because it waits for that callback.
        """
        return await self._calls.flush(timeout_s)

    async def models(self, *, deadline_s: float | None = None) -> ModelList:
        """List models, metrics and limits of the server."""
        return await self._calls.models(deadline_s)

    async def close(self) -> None:
        """Finish submissions, for at most a minute, and close the connection. You can close twice."""
        await self._calls.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


async def _flatten(stream: AsyncGenerator[list[T]]) -> AsyncGenerator[T]:
    async with aclosing(stream) as batches:
        async for batch in batches:
            for result in batch:
                yield result


async def _turns(rows: Iterable[T]) -> AsyncIterator[T]:
    for position, row in enumerate(rows, 1):
        yield row
        if position % _ITEMS_PER_TURN == 0:
            await asyncio.sleep(0)
