"""The client on the caller's own event loop."""

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
    """The base of both clients: their settings. Each says in `_start` where its calls run."""

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
    """The settings of a client, which is pickled as these."""

    carrier: Transport | Endpoint
    deadline_s: float
    submit_limits: SubmitLimits | None

    def make_calls(self) -> ClientCalls:
        return ClientCalls(connect(self.carrier), self.deadline_s, self.submit_limits)


class AsyncClient(ClientBase):
    """A client that scores answers on a gradewire server; `async with` closes it; arguments and errors as `Client`."""

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
        """Score items, in order.

        Long lists are cut into requests, of which a few are in flight. An item that cannot be sent (wrong types, lone
        surrogates, too large) becomes INVALID_INPUT and the rest is scored. When some requests are answered and others
        fail for want of a server or of time, the items of the others are UNAVAILABLE or TIMEOUT.

        Args:
            items: Mappings with the keys of `Item` or other usual names of them, `Item`s, or a table with a row for
                each (pandas, polars, Arrow, a Hugging Face dataset).
            metrics: `"smile,sbert"`, `"smile:fast"`, metric lines, typed metrics, or a sequence of these. None:
                `"smile,correctness"`; smile alone, with a line in the log, where the encoder has no fit for it.
            progress: Called with (items done, items in all) from the client's thread; an exception ends the call.
            **options: As `gradewire.options.ScoreOptions` says: `preset`, `synthetic`, `model`, `judge`,
                `priority`, `reference_set`, `deadline_s` (for the whole call; else the client's, an hour where a metric
                asks a judge).

        Raises:
            InvalidRequest: The message names the argument.
            GradewireError: No request was answered; which one says why.
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
        """Score items as they come, and give each back when it is done: not in order, `index` tells.

        Reads at most 256 items ahead of what was taken, so the source may be endless. A stream that breaks is taken up
        again with the unfinished items. A plain iterable is read on the event loop and must not block.

        Args:
            items: As `score`; read while results are taken.
            metrics: As `score`.
            **options: As `score`, but `deadline_s` is the longest wait for the next result while items are in work;
                else the client's, ten minutes where a metric asks a judge.

        Raises:
            InvalidRequest: At once; the message names the argument.
            GradewireError: While iterating; what was yielded before stands.
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
        """Ask a judge which answer of each pair is the better one, in order.

        Each pair is shown twice, with either answer first. A pair that cannot be sent becomes INVALID_INPUT and the
        rest is compared; what else fails, fails as items of `score` do.

        Args:
            pairs: `Pair`s, mappings with their keys, or a table with a row for each.
            by: `"compare"`, a line of it (`"compare?references=true&mode=reason"`), or a `Compare`.
            progress: As `score`, of pairs.
            **options: As `gradewire.options.CompareOptions` says: `judge`, `priority`, `deadline_s` (for the whole
                call; else the client's, an hour at least).

        Raises:
            InvalidRequest: The message names the argument.
            GradewireError: No request was answered; which one says why.
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
        """Compare pairs as they come, and give each back when it is done: not in order, `index` tells.

        Reads ahead, and goes on after a break, as `score_stream`.

        Args:
            pairs: As `compare`; read while comparisons are taken.
            by: As `compare`.
            **options: As `compare`, but `deadline_s` is the longest wait for the next comparison while pairs are in
                work; else the client's, ten minutes at least.

        Raises:
            InvalidRequest: At once; the message names the argument.
            GradewireError: While iterating; what was yielded before stands.
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
        """Get references ready before answers come, and store synthetic answers for `synthetic="prepared"`.

        The same entries again compute nothing; after a break, call again to go on.

        Args:
            entries: Mappings with the keys of `ReferenceEntry`, `ReferenceEntry`s, or a table, as items of `score`;
                items will do.
            metrics: What to get ready for, as `score`.
            generate: Have a judge write a synthetic answer for each reference that has none: True for the default
                judge, or its name, or a `SyntheticGeneration`. The set keeps them, so each is written once.
            immutable: The set is to have these entries and never others: refused where it has other ones already, and
                from then on nothing is added to it. `report.pinned` is its name with its digest.
            progress: Called as entries are done, from the client's thread; an exception ends the call.
            **options: As `gradewire.options.PrepareOptions` says: `preset`, `synthetic` (else prepared, where a
                judge writes), `model`, `deadline_s` (for the whole call; else an hour, for encoding a large set takes
                its time, and a day where a judge writes).

        Raises:
            InvalidRequest: The message names the argument.
            GradewireError: Which one says why; what was done is kept.
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
        """Score later: take a snapshot of the items and return at once; it never blocks and never raises.

        All failures are in the future: Overloaded when more than `max_pending_items` or `max_pending_bytes` would be
        pending, InvalidRequest for wrong arguments. In async code: `await asyncio.wrap_future(client.submit(…))`.

        Args:
            items: As `score`.
            metrics: As `score`.
            callback: Called with the future when it is done, on a thread for callbacks; its exceptions are logged.
            **options: As `score`; `deadline_s` runs from when its turn comes.
        """
        call = CallOptions.of("AsyncClient.submit", metrics, options)
        return self._calls.submit(asyncio.get_running_loop, items, call, callback)

    async def flush(self, timeout_s: float | None = None) -> bool:
        """Wait until all that is submitted is done, callbacks included; False when timeout_s ran out before.

        Must not be called from a callback of `submit`, which it would wait for.
        """
        return await self._calls.flush(timeout_s)

    async def models(self, *, deadline_s: float | None = None) -> ModelList:
        """Models, metrics and limits of the server."""
        return await self._calls.models(deadline_s)

    async def close(self) -> None:
        """Finish what was submitted, for at most a minute, and close the connection; closing twice is fine."""
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
