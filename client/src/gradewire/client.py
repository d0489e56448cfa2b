"""The client for programs without an event loop."""

import asyncio
import weakref
from collections.abc import AsyncGenerator, Generator, Iterable, Iterator
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Self

from gradewire._calls.arguments import ClientSettings, check_rows
from gradewire._calls.batch import ProgressCallback
from gradewire._calls.core import Core, ScoreOptions
from gradewire._calls.prepare import PrepareCallback
from gradewire._calls.submissions import MAX_PENDING_BYTES, MAX_PENDING_ITEMS, SubmitCallback, refused
from gradewire._transport.background import BackgroundLoop
from gradewire._transport.feeder import Feeder
from gradewire._transport.runtime import Runtime
from gradewire.async_client import DEADLINE_S, connect
from gradewire.items import ItemLike
from gradewire.metric_types import Preset, Synthetic
from gradewire.metric_types.choice import MetricsLike
from gradewire.model_list import ModelList
from gradewire.preparation import PrepareReport, ReferenceEntryLike, SyntheticGeneration
from gradewire.results import ItemScores
from gradewire.score_report import ScoreReport
from gradewire.tls import Tls
from gradewire.transport import Transport


class Client:
    """Scores answers on a gradewire server; `with` closes it, so does the end of the program.

    The same methods as `AsyncClient`, run on a thread of the client's own: usable from several threads, and where an
    event loop runs already, as in a notebook. After a fork the child gets a thread and a connection of its own at first
    use (ForkedClient where the parent has used gRPC before: the C library does not survive that).

    Args:
        address: HOST:PORT of the server.
        deadline_s: For calls that do not say their own, seconds.
        token: Sent as bearer token.
        tls: Encrypts; None talks in clear.
        transport: Takes the place of the connection to `address`: `gradewire.testing.StubTransport` in tests.
        max_pending_items: Items that `submit` lets wait and be in work.
        max_pending_bytes: The same in bytes of their texts, as UTF-8.

    Raises:
        InvalidRequest: An argument is wrong; the message names it.
    """

    def __init__(  # noqa: PLR0913 - all optional and named; a configuration object would only hide them
        self,
        address: str = "127.0.0.1:50051",
        *,
        deadline_s: float = DEADLINE_S,
        token: str | None = None,
        tls: Tls | None = None,
        transport: Transport | None = None,
        max_pending_items: int = MAX_PENDING_ITEMS,
        max_pending_bytes: int = MAX_PENDING_BYTES,
    ) -> None:
        settings = ClientSettings(
            deadline_s=deadline_s, max_pending_items=max_pending_items, max_pending_bytes=max_pending_bytes
        )
        carrier = transport or connect(address, token=token, tls=tls)
        self._runtime = Runtime(lambda: Core(carrier, settings))
        weakref.finalize(self, self._runtime.close)

    def score(  # noqa: PLR0913 - the one call that most users make; all but two arguments are optional and named
        self,
        items: Iterable[ItemLike],
        metrics: MetricsLike = "smile",
        *,
        preset: Preset | None = None,
        synthetic: Synthetic | None = None,
        model: str | None = None,
        judge: str | None = None,
        reference_set: str | None = None,
        deadline_s: float | None = None,
        progress: ProgressCallback | None = None,
    ) -> ScoreReport:
        """See `AsyncClient.score`."""
        check_rows("items", items)
        taken = list(items)
        options = ScoreOptions(metrics, preset, synthetic, model, reference_set, deadline_s, judge)
        return self._runtime.run(lambda core: core.score(taken, options, progress))

    def score_stream(  # noqa: PLR0913 - as `score`
        self,
        items: Iterable[ItemLike],
        metrics: MetricsLike = "smile",
        *,
        preset: Preset | None = None,
        synthetic: Synthetic | None = None,
        model: str | None = None,
        judge: str | None = None,
        reference_set: str | None = None,
        deadline_s: float | None = None,
    ) -> Iterator[ItemScores]:
        """See `AsyncClient.score_stream`; the items are read on a thread of their own, so the source may block."""
        check_rows("items", items)
        options = ScoreOptions(metrics, preset, synthetic, model, reference_set, deadline_s, judge)
        running = self._runtime.running()
        feeder = Feeder(items)
        return _iterate(running.loop, feeder, running.core.stream(feeder, options).run())

    def prepare(  # noqa: PLR0913 - as `score`
        self,
        entries: Iterable[ReferenceEntryLike],
        metrics: MetricsLike = "smile",
        *,
        preset: Preset | None = None,
        synthetic: Synthetic | None = None,
        model: str | None = None,
        generate: bool | str | SyntheticGeneration = False,
        deadline_s: float | None = None,
        progress: PrepareCallback | None = None,
    ) -> PrepareReport:
        """See `AsyncClient.prepare`."""
        check_rows("entries", entries)
        taken = list(entries)
        options = ScoreOptions(metrics, preset, synthetic, model, None, deadline_s)
        return self._runtime.run(lambda core: core.prepare(taken, options, progress, generate))

    def submit(  # noqa: PLR0913 - as `score`
        self,
        items: Iterable[ItemLike],
        metrics: MetricsLike = "smile",
        *,
        preset: Preset | None = None,
        synthetic: Synthetic | None = None,
        model: str | None = None,
        judge: str | None = None,
        reference_set: str | None = None,
        deadline_s: float | None = None,
        callback: SubmitCallback | None = None,
    ) -> Future[ScoreReport]:
        """See `AsyncClient.submit`."""
        options = ScoreOptions(metrics, preset, synthetic, model, reference_set, deadline_s, judge)
        try:
            running = self._runtime.running()
        except Exception as error:  # noqa: BLE001 - the promise of submit: nothing is raised into a training loop
            return refused(error, callback)
        return running.core.submit(lambda: running.loop.loop, items, options, callback)

    def flush(self, timeout_s: float | None = None) -> bool:
        """See `AsyncClient.flush`."""
        return self._runtime.run(lambda core: core.flush(timeout_s))

    def models(self, *, deadline_s: float | None = None) -> ModelList:
        """See `AsyncClient.models`."""
        return self._runtime.run(lambda core: core.models(deadline_s))

    def close(self) -> None:
        """See `AsyncClient.close`."""
        self._runtime.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def _iterate(
    loop: BackgroundLoop, feeder: Feeder, batches: AsyncGenerator[list[ItemScores]]
) -> Generator[ItemScores, None, None]:
    taking: asyncio.Task[Any] | None = None

    async def take() -> list[ItemScores] | None:
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
        feeder.close()
        loop.run(finish())
