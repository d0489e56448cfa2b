"""The asynchronous client, which runs on the caller's event loop."""

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
from gradewire.candidates import CandidateRows
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
from gradewire.ranking import Ranking, RankingPlan
from gradewire.references import EntriesLike, PrepareReport, SyntheticGeneration
from gradewire.results import ItemScores, ModelList, ScoreReport
from gradewire.transport import Endpoint, Tls, Transport

DEADLINE_S = 30.0
# Number of items to read from a plain iterable before other tasks may run.
_ITEMS_PER_TURN = 32

T = TypeVar("T")


class ClientBase:
    """The base class of both clients, which stores their settings."""

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
    """A client's settings. A pickled client contains nothing else."""

    carrier: Transport | Endpoint
    deadline_s: float
    submit_limits: SubmitLimits | None

    def make_calls(self) -> ClientCalls:
        return ClientCalls(connect(self.carrier), self.deadline_s, self.submit_limits)


class AsyncClient(ClientBase):
    """An asynchronous client for a gradewire server, with the same arguments and errors as `Client`."""

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
        """Score items and return a report with their results, in the same order.

        An item that cannot be sent (because of its size, wrong types or lone surrogates) gets the status INVALID_INPUT.
        If only some requests fail, their items get the status UNAVAILABLE or TIMEOUT.

        Args:
            items: `Item` objects, mappings with the same keys (or usual aliases), or a table with one item per row
                (pandas, polars, Arrow, a Hugging Face dataset).
            metrics: `"smile,sbert"`, `"smile:fast"`, metric identifiers, typed metrics, or a sequence of these. None
                means `"correctness,smile"`, or only smile (with a logged warning) if `correctness` is not fitted to the
                encoder.
            progress: A function to call as `progress(finished_items, all_items)` on the client's thread. An exception
                in the function ends the call.
            **options: See `gradewire.options.ScoreOptions`: `preset`, `synthetic`, `model`, `judge`, `priority`,
                `reference_set`, and `deadline_s` for the whole call. The default deadline is the client's, or an hour
                if the call needs a judge.

        Raises:
            InvalidRequest: An argument is wrong.
            GradewireError: All requests failed.
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
        """Score a stream of items and yield each result when it is ready. Use `index` to restore the order.

        The client reads at most 256 items ahead, so the iterable may be endless. If the connection breaks, a new stream
        continues with the unfinished items. A plain iterable must not block, because the client reads it on the event
        loop.

        Args:
            items: The same types as for `score`, or an async iterable.
            metrics: The same as for `score`.
            **options: The same as for `score`, but `deadline_s` limits the wait for the next result while items are in
                progress. The default is the client's deadline, or ten minutes if the call needs a judge.

        Raises:
            InvalidRequest: An argument is wrong; raised at once.
            GradewireError: Raised during iteration; results already yielded stay valid.
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
        """Ask a judge which answer of each pair is better, and return comparisons in the order of the pairs.

        The judge sees each pair twice, once with each answer first. A pair that cannot be sent gets the status
        INVALID_INPUT. If only some requests fail, their pairs get the status UNAVAILABLE or TIMEOUT.

        Args:
            pairs: `Pair` objects, mappings with the same keys, or a table with one pair per row.
            by: `"compare"`, an identifier (`"compare?references=true&mode=reason"`), or a `Compare`.
            progress: A function to call as `progress(finished_pairs, all_pairs)` on the client's thread. An exception
                in the function ends the call.
            **options: See `gradewire.options.CompareOptions`: `judge`, `priority`, and `deadline_s` for the whole call.
                The default deadline is the client's, but at least an hour.

        Raises:
            InvalidRequest: An argument is wrong.
            GradewireError: All requests failed.
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
        """Compare a stream of pairs and yield each result when it is ready. Use `index` to restore the order.

        The client reads a few pairs ahead. If the connection breaks, a new stream continues with the unfinished pairs.

        Args:
            pairs: The same types as for `compare`, or an async iterable.
            by: The same as for `compare`.
            **options: The same as for `compare`, but `deadline_s` limits the wait for the next comparison while pairs
                are in progress. The default is the client's deadline, but at least ten minutes.

        Raises:
            InvalidRequest: An argument is wrong; raised at once.
            GradewireError: Raised during iteration; comparisons already yielded stay valid.
        """
        source = pairs if isinstance(pairs, AsyncIterable) else _turns(rows_of("pairs", pairs))
        rows = PairRows("AsyncClient.compare_stream", by, options)
        return _flatten(self._calls.compare_stream(source, rows))

    async def rank(
        self,
        candidates: CandidateRows,
        by: ComparisonLike = "compare",
        *,
        max_pairs: int | None = None,
        progress: ProgressCallback | None = None,
        **options: Unpack[CompareOptions],
    ) -> list[Ranking]:
        """Have a judge rank several answers to each question, and return rankings in the order of the questions.

        The judge compares the answers in pairs, in both orders. An answer's score is the share of its decided pairs
        that it won. Ties and pairs without a winner are counted but not scored. For the cost of a call in advance, see
        `RankingPlan.of(candidates, max_pairs, by).cost`.

        With `by="compare:listwise"`, the judge sees all answers at once and puts them in order, in four prompts with
        different orders of the answers (two for two answers). An answer beats another one if it is ahead of it in all
        of them, or with `decision=majority`, in more of them than behind it.

        Args:
            candidates: `Candidates` objects, mappings with the same keys, or a table with one question per row.
            by: The same as for `compare`, or `"compare:listwise"`.
            max_pairs: Maximum number of pairs for each question, at least one less than the answers; None means all
                pairs. With fewer pairs, each answer meets about the same number of others.
            progress: A function to call as `progress(finished_pairs, all_pairs)`, as for `compare`.
            **options: The same as for `compare`.

        Raises:
            InvalidRequest: An argument is wrong.
            GradewireError: All requests failed.
        """
        plan = RankingPlan.of(candidates, max_pairs, by)
        rows = PairRows("AsyncClient.rank", by, options)
        return plan.rankings(await self._calls.compare(plan.pairs, rows, progress))

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

        The server keeps finished work. To resume an interrupted call, repeat it.

        Args:
            entries: `ReferenceEntry` objects, mappings with the same keys, items, or a table with one entry per row.
            metrics: Metrics to prepare for, in the same formats as for `score`.
            generate: The judge that writes missing synthetic answers: True for the default judge, a judge's name, or a
                `SyntheticGeneration`. The reference set keeps the answers, so the judge writes each answer only once.
            immutable: True to freeze the reference set with exactly these entries. The call fails if the set already
                has different entries. `report.pinned` contains the set's name and digest.
            progress: A function to call with a `PrepareProgress` on the client's thread when entries are finished. An
                exception in the function ends the call.
            **options: See `gradewire.options.PrepareOptions`: `preset`, `synthetic` (with `generate`, "prepared" by
                default), `model`, and `deadline_s` for the whole call. The default deadline is an hour, or a day with
                `generate`.

        Raises:
            InvalidRequest: An argument is wrong.
            GradewireError: A request failed.
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
        """Copy the items, queue them for scoring and return at once. This method neither blocks nor raises.

        The future carries all errors: Overloaded if more than `max_pending_items` or `max_pending_bytes` would be
        pending, InvalidRequest for wrong arguments. In async code, use `await asyncio.wrap_future(client.submit(…))`.

        Args:
            items: The same as for `score`.
            metrics: The same as for `score`.
            callback: A function to call with the finished future, on a separate thread. The client logs the callback's
                exceptions.
            **options: The same as for `score`; `deadline_s` counts from the start of scoring.
        """
        call = CallOptions.of("AsyncClient.submit", metrics, options)
        return self._calls.submit(asyncio.get_running_loop, items, call, callback)

    async def flush(self, timeout_s: float | None = None) -> bool:
        """Wait for all submissions and their callbacks; return False if some are left after `timeout_s` seconds.

        Do not call `flush` in a callback of `submit`, because `flush` waits for the callback to return.
        """
        return await self._calls.flush(timeout_s)

    async def models(self, *, deadline_s: float | None = None) -> ModelList:
        """Return the server's models, metrics and limits."""
        return await self._calls.models(deadline_s)

    async def close(self) -> None:
        """Wait up to a minute for submissions, then close the connection. Closing again does nothing."""
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
