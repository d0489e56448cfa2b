"""The blocking client, and scorers that need no server."""

import asyncio
import contextlib
import weakref
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from concurrent.futures import Future
from typing import Any, Self, TypeVar, Unpack

from gradewire._calls.background import BackgroundCalls, BackgroundLoop, IterableReader
from gradewire._calls.client_calls import ClientCalls
from gradewire._calls.compare import PairRows
from gradewire._calls.prepare import PrepareCallback
from gradewire._calls.requests import ProgressCallback
from gradewire._calls.submit import SubmitCallback, refused
from gradewire.async_api import AsyncClient, ClientBase
from gradewire.candidates import CandidateRows
from gradewire.errors import ClientClosed, ForkedClientError, MissingExtra
from gradewire.items import ItemsLike
from gradewire.metrics import ComparisonLike
from gradewire.metrics.choice import MetricsLike
from gradewire.options import CallOptions, CompareOptions, PrepareOptions, ScoreOptions, rows_of
from gradewire.pairs import Comparison, PairsLike
from gradewire.ranking import Ranking, RankingPlan
from gradewire.references import EntriesLike, PrepareReport, SyntheticGeneration
from gradewire.results import ItemScores, ModelList, ScoreReport
from gradewire.transport import Transport

T = TypeVar("T")


class Client(ClientBase):
    """A blocking client for a gradewire server. A `with` block, or the end of the program, closes the client.

    The client works on a background thread, so you can call it from several threads, or from a notebook with a running
    event loop. A pickled client, or a client in a forked process, connects again at its first use. If gRPC was loaded
    before the fork, calls in the child raise ForkedClientError.

    Args:
        address: HOST:PORT of the server.
        deadline_s: Default deadline of a call, in seconds.
        token: Bearer token.
        tls: Encryption settings; None means no encryption.
        connections: Maximum number of connections; 0 means enough to reach every server process.
        transport: Replacement for the connection to `address`, for example `gradewire.testing.StubTransport`.
        submit_limits: Limits on pending submissions; None means `SubmitLimits()`.

    Raises:
        InvalidRequest: An argument is wrong.
    """

    def _start(self, make_calls: Callable[[], ClientCalls]) -> None:
        self._background = BackgroundCalls(make_calls)
        weakref.finalize(self, self._background.close)

    def score(
        self,
        items: ItemsLike,
        metrics: MetricsLike | None = None,
        *,
        progress: ProgressCallback | None = None,
        **options: Unpack[ScoreOptions],
    ) -> ScoreReport:
        """Score items and return a report; see `AsyncClient.score`."""
        taken = list(rows_of("items", items))
        call = CallOptions.of("Client.score", metrics, options)
        return self._background.run(lambda calls: calls.score(taken, call, progress))

    def score_stream(
        self,
        items: ItemsLike,
        metrics: MetricsLike | None = None,
        **options: Unpack[ScoreOptions],
    ) -> Iterator[ItemScores]:
        """Score a stream of items and yield each result when it is ready; see `AsyncClient.score_stream`.

        A separate thread iterates over `items`, so the iterable may block.
        """
        rows = rows_of("items", items)
        call = CallOptions.of("Client.score_stream", metrics, options)
        running = self._background.running()
        reader = IterableReader(rows)
        return _iterate(running.loop, reader, running.calls.stream(reader, call))

    def compare(
        self,
        pairs: PairsLike,
        by: ComparisonLike = "compare",
        *,
        progress: ProgressCallback | None = None,
        **options: Unpack[CompareOptions],
    ) -> list[Comparison]:
        """Ask a judge which answer of each pair is better; see `AsyncClient.compare`."""
        taken = list(rows_of("pairs", pairs))
        rows = PairRows("Client.compare", by, options)
        return self._background.run(lambda calls: calls.compare(taken, rows, progress))

    def compare_stream(
        self,
        pairs: PairsLike,
        by: ComparisonLike = "compare",
        **options: Unpack[CompareOptions],
    ) -> Iterator[Comparison]:
        """Compare a stream of pairs and yield each result when it is ready; see `AsyncClient.compare_stream`.

        A separate thread iterates over `pairs`, so the iterable may block.
        """
        source = rows_of("pairs", pairs)
        rows = PairRows("Client.compare_stream", by, options)
        running = self._background.running()
        reader = IterableReader(source)
        return _iterate(running.loop, reader, running.calls.compare_stream(reader, rows))

    def rank(
        self,
        candidates: CandidateRows,
        by: ComparisonLike = "compare",
        *,
        max_pairs: int | None = None,
        progress: ProgressCallback | None = None,
        **options: Unpack[CompareOptions],
    ) -> list[Ranking]:
        """Have a judge rank several answers to each question; see `AsyncClient.rank`."""
        plan = RankingPlan.of(candidates, max_pairs, by)
        pairs, rows = plan.pairs, PairRows("Client.rank", by, options)
        return plan.rankings(self._background.run(lambda calls: calls.compare(pairs, rows, progress)))

    def prepare(
        self,
        entries: EntriesLike,
        metrics: MetricsLike | None = None,
        *,
        generate: bool | str | SyntheticGeneration = False,
        immutable: bool = False,
        progress: PrepareCallback | None = None,
        **options: Unpack[PrepareOptions],
    ) -> PrepareReport:
        """Prepare references before answers arrive; see `AsyncClient.prepare`."""
        taken = list(rows_of("entries", entries))
        call = CallOptions.of("Client.prepare", metrics, options)
        return self._background.run(lambda calls: calls.prepare(taken, call, progress, generate, immutable=immutable))

    def submit(
        self,
        items: ItemsLike,
        metrics: MetricsLike | None = None,
        *,
        callback: SubmitCallback | None = None,
        **options: Unpack[ScoreOptions],
    ) -> Future[ScoreReport]:
        """Queue items for scoring and return at once, without raising errors; see `AsyncClient.submit`."""
        call = CallOptions.of("Client.submit", metrics, options)
        try:
            running = self._background.running()
        except Exception as error:  # noqa: BLE001 - submit never raises
            return refused(error, callback)
        return running.calls.submit(lambda: running.loop.loop, items, call, callback)

    def flush(self, timeout_s: float | None = None) -> bool:
        """Wait for all submissions and their callbacks; return False if some are left after `timeout_s` seconds."""
        return self._background.run(lambda calls: calls.flush(timeout_s))

    def models(self, *, deadline_s: float | None = None) -> ModelList:
        """Return the server's models, metrics and limits."""
        return self._background.run(lambda calls: calls.models(deadline_s))

    def close(self) -> None:
        """Wait up to a minute for submissions, then close the connection. Closing again does nothing."""
        self._background.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _iterate(
    loop: BackgroundLoop, reader: IterableReader[Any], batches: AsyncGenerator[list[T]]
) -> Generator[T, None, None]:
    taking: asyncio.Task[Any] | None = None

    async def take() -> list[T] | None:
        nonlocal taking
        taking = asyncio.current_task()
        return await anext(batches, None)

    async def finish() -> None:
        # After Ctrl-C, `take` is still being cancelled, and the generator cannot be closed while it runs.
        if taking is not None:
            taking.cancel()
            await asyncio.wait([taking])
        await batches.aclose()

    try:
        while (batch := loop.run(take())) is not None:
            yield from batch
    finally:
        reader.close()
        with contextlib.suppress(ClientClosed, ForkedClientError):  # the loop has ended, or runs in the parent
            loop.run(finish())


# Without a network, a deadline limits only the computation.
EMBEDDED_DEADLINE_S = 3600.0


class _Embedded(ClientBase):
    @classmethod
    def embedded(cls, **settings: Any) -> Self:
        """Return a scorer. Its first call loads the model and opens the caches.

        Args:
            **settings: Server settings by name (docs/reference/settings.md), such as `model_repository` and
                `disk_directory`, and `deadline_s`, the default deadline of a call in seconds.

        Raises:
            MissingExtra: The server package is not installed.
            InvalidRequest: A setting is unknown or invalid.
        """
        deadline_s = settings.pop("deadline_s", EMBEDDED_DEADLINE_S)
        return cls(deadline_s=deadline_s, transport=embedded_transport(**settings))


class Scorer(_Embedded, Client):
    """A scorer that runs in this process, with the methods of `Client`. Create one with `Scorer.embedded()`."""


class AsyncScorer(_Embedded, AsyncClient):
    """A scorer that runs in this process, with `AsyncClient`'s methods. Create one with `AsyncScorer.embedded()`."""


def embedded_transport(**settings: Any) -> Transport:
    """Return the transport that `Scorer.embedded` uses; raise the errors of `Scorer.embedded`."""
    try:
        from gradewire._transports.embedded import EmbeddedTransport  # noqa: PLC0415 - loads the server's libraries

        return EmbeddedTransport(settings)
    except ImportError as error:
        missing = MissingExtra.of("the embedded engine", error)
        raise missing from (None if isinstance(error, ModuleNotFoundError) else error)
