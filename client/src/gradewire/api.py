"""The client for programs without an event loop, and the same methods over an engine in this process."""

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
from gradewire.errors import ClientClosed, ForkedClientError, MissingExtra
from gradewire.items import ItemsLike
from gradewire.metrics import ComparisonLike
from gradewire.metrics.choice import MetricsLike
from gradewire.options import CallOptions, CompareOptions, PrepareOptions, ScoreOptions, rows_of
from gradewire.pairs import Comparison, PairsLike
from gradewire.references import EntriesLike, PrepareReport, SyntheticGeneration
from gradewire.results import ItemScores, ModelList, ScoreReport
from gradewire.transport import Transport

T = TypeVar("T")


class Client(ClientBase):
    """A client that scores answers on a gradewire server; `with` closes it, so does the end of the program.

    The same methods as `AsyncClient`, run on a thread of the client's own: usable from several threads, and where an
    event loop runs already, as in a notebook. Forked, or pickled as its settings, it starts afresh at its first use in
    the other process; in a child forked after gRPC was loaded its calls raise ForkedClientError.

    Args:
        address: HOST:PORT of the server.
        deadline_s: For calls that do not say their own, seconds.
        token: Sent as bearer token.
        tls: How to encrypt; None: no encryption.
        connections: How many to spread calls over; 0: one, and as many as the processes of the server need.
        transport: Takes the place of the connection to `address`: `gradewire.testing.StubTransport` in tests.
        submit_limits: How much `submit` lets wait; None: `SubmitLimits()`.

    Raises:
        InvalidRequest: An argument is wrong; the message names it.
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
        """Score items, in order, and wait for the report; arguments and errors as `AsyncClient.score`."""
        taken = list(rows_of("items", items))
        call = CallOptions.of("Client.score", metrics, options)
        return self._background.run(lambda calls: calls.score(taken, call, progress))

    def score_stream(
        self,
        items: ItemsLike,
        metrics: MetricsLike | None = None,
        **options: Unpack[ScoreOptions],
    ) -> Iterator[ItemScores]:
        """Score items as they come, and give each back when it is done; arguments as `AsyncClient.score_stream`.

        The items are read on a thread of their own, so their source may block.
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
        """Ask a judge which answer of each pair is the better one; arguments and errors as `AsyncClient.compare`."""
        taken = list(rows_of("pairs", pairs))
        rows = PairRows("Client.compare", by, options)
        return self._background.run(lambda calls: calls.compare(taken, rows, progress))

    def compare_stream(
        self,
        pairs: PairsLike,
        by: ComparisonLike = "compare",
        **options: Unpack[CompareOptions],
    ) -> Iterator[Comparison]:
        """Compare pairs as they come, and give each back when it is done; arguments as `AsyncClient.compare_stream`.

        The pairs are read on a thread of their own, so their source may block.
        """
        source = rows_of("pairs", pairs)
        rows = PairRows("Client.compare_stream", by, options)
        running = self._background.running()
        reader = IterableReader(source)
        return _iterate(running.loop, reader, running.calls.compare_stream(reader, rows))

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
        """Get references ready before answers come; arguments and errors as `AsyncClient.prepare`."""
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
        """Score later: return at once; it never raises; arguments as `AsyncClient.submit`."""
        call = CallOptions.of("Client.submit", metrics, options)
        try:
            running = self._background.running()
        except Exception as error:  # noqa: BLE001 - the promise of submit: nothing is raised into a training loop
            return refused(error, callback)
        return running.calls.submit(lambda: running.loop.loop, items, call, callback)

    def flush(self, timeout_s: float | None = None) -> bool:
        """Wait until all that is submitted is done, callbacks included; False when timeout_s ran out before."""
        return self._background.run(lambda calls: calls.flush(timeout_s))

    def models(self, *, deadline_s: float | None = None) -> ModelList:
        """Models, metrics and limits of the server."""
        return self._background.run(lambda calls: calls.models(deadline_s))

    def close(self) -> None:
        """Finish what was submitted, for at most a minute, and close the connection; closing twice is fine."""
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
        # After Ctrl-C the last take is still being cancelled, and a generator cannot be closed while it runs.
        if taking is not None:
            taking.cancel()
            await asyncio.wait([taking])
        await batches.aclose()

    try:
        while (batch := loop.run(take())) is not None:
            yield from batch
    finally:
        reader.close()
        with contextlib.suppress(ClientClosed, ForkedClientError):  # its generator ends with its loop, or in the parent
            loop.run(finish())


# No network is in the way, so a deadline only bounds the computing itself.
EMBEDDED_DEADLINE_S = 3600.0


class _Embedded(ClientBase):
    @classmethod
    def embedded(cls, **settings: Any) -> Self:
        """Make a scorer; model and caches are opened at the first call.

        Args:
            **settings: As the server's, by name (docs/reference/settings.md): `model_repository`, `disk_directory`, …
                `deadline_s` is for calls that do not say their own, seconds.

        Raises:
            MissingExtra: The server's part is not installed.
            InvalidRequest: A setting is unknown or has a value that cannot be used.
        """
        deadline_s = settings.pop("deadline_s", EMBEDDED_DEADLINE_S)
        return cls(deadline_s=deadline_s, transport=embedded_transport(**settings))


class Scorer(_Embedded, Client):
    """A scorer in this process; made by `Scorer.embedded()`, used like `Client`, with the same scores."""


class AsyncScorer(_Embedded, AsyncClient):
    """A scorer in this process, on the caller's loop; made by `AsyncScorer.embedded()`, used like `AsyncClient`."""


def embedded_transport(**settings: Any) -> Transport:
    """Return the transport of `Scorer.embedded`; raises as that does."""
    try:
        from gradewire._transports.embedded import EmbeddedTransport  # noqa: PLC0415 - loads the server's libraries

        return EmbeddedTransport(settings)
    except ImportError as error:
        raise MissingExtra.of("the embedded engine", error) from error
