"""The client on the caller's own event loop."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Iterable
from concurrent.futures import Future
from contextlib import aclosing
from types import TracebackType
from typing import Self

from gradewire._calls.arguments import ClientSettings, check_rows
from gradewire._calls.batch import ProgressCallback
from gradewire._calls.core import Core, ScoreOptions
from gradewire._calls.prepare import PrepareCallback
from gradewire._calls.stream import Stream
from gradewire._calls.submissions import MAX_PENDING_BYTES, MAX_PENDING_ITEMS, SubmitCallback
from gradewire.errors import InvalidRequest
from gradewire.items import ItemLike
from gradewire.metric_types import Preset, Synthetic
from gradewire.metric_types.choice import MetricsLike
from gradewire.model_list import ModelList
from gradewire.preparation import PrepareReport, ReferenceEntryLike, SyntheticGeneration
from gradewire.results import ItemScores
from gradewire.score_report import ScoreReport
from gradewire.tls import Tls
from gradewire.transport import Transport

DEADLINE_S = 30.0
# Items of a plain iterable between two turns of the event loop.
_ITEMS_PER_TURN = 32


class AsyncClient:
    """Scores answers on a gradewire server; `async with` closes it.

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
        self._core = Core(carrier, settings)

    async def score(  # noqa: PLR0913 - the one call that most users make; all but two arguments are optional and named
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
        """Scores items, in order.

        Long lists are cut into requests, of which a few are in flight. An item that cannot be sent (wrong types, lone
        surrogates, too large) becomes INVALID_INPUT and the rest is scored. When some requests are answered and others
        fail for want of a server or of time, the items of the others are UNAVAILABLE or TIMEOUT.

        Args:
            items: Mappings with the keys of `Item`, or `Item`s.
            metrics: `"smile,sbert"`, `"smile:fast"`, metric lines, typed metrics, or a sequence of these.
            preset: For smile where `metrics` names none.
            synthetic: none, inline or prepared; for smile where `metrics` does not say.
            model: Encoder, NAME or NAME@DIGEST, for metrics that do not say their own.
            judge: The same for metrics that ask a judge.
            reference_set: What `prepare` returned, for metrics with synthetic, corpus or idf = prepared.
            deadline_s: For the whole call, seconds; None: the client's, an hour where a metric asks a judge.
            progress: Called with (items done, items in all) from the client's thread; an exception ends the call.

        Raises:
            InvalidRequest: The message names the argument.
            GradewireError: No request was answered; which one says why.
        """
        check_rows("items", items)
        options = ScoreOptions(metrics, preset, synthetic, model, reference_set, deadline_s, judge)
        return await self._core.score(list(items), options, progress)

    def score_stream(  # noqa: PLR0913 - as `score`
        self,
        items: Iterable[ItemLike] | AsyncIterable[ItemLike],
        metrics: MetricsLike = "smile",
        *,
        preset: Preset | None = None,
        synthetic: Synthetic | None = None,
        model: str | None = None,
        judge: str | None = None,
        reference_set: str | None = None,
        deadline_s: float | None = None,
    ) -> AsyncGenerator[ItemScores]:
        """Scores items as they come, and gives each back when it is done: not in order, `index` tells.

        Reads at most 256 items ahead of what was taken, so the source may be endless. A stream that breaks is taken up
        again with the unfinished items. A plain iterable is read on the event loop and must not block.

        Args:
            items: As `score`; read while results are taken.
            metrics: As `score`.
            preset: As `score`.
            synthetic: As `score`.
            model: As `score`.
            judge: As `score`.
            reference_set: As `score`.
            deadline_s: Longest wait for the next result while items are in work, seconds; None: the client's, ten
                minutes where a metric asks a judge.

        Raises:
            InvalidRequest: At once; the message names the argument.
            GradewireError: While iterating; what was yielded before stands.
        """
        check_rows("items", items, may_be_async=True)
        options = ScoreOptions(metrics, preset, synthetic, model, reference_set, deadline_s, judge)
        return _flatten(self._core.stream(_turns(items), options))

    async def prepare(  # noqa: PLR0913 - as `score`
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
        """Gets references ready before answers come, and stores synthetic answers for `synthetic="prepared"`.

        The same entries again compute nothing; after a break, call again to go on.

        Args:
            entries: Mappings with the keys of `ReferenceEntry`, or `ReferenceEntry`s; items will do.
            metrics: What to get ready for, as `score`.
            preset: As `score`.
            synthetic: As `score`; prepared, where a judge writes.
            model: As `score`.
            generate: Have a judge write a synthetic answer for each reference that has none: True for the default
                judge, or its name, or a `SyntheticGeneration`. The set keeps them, so each is written once.
            deadline_s: For the whole call, seconds; None: an hour, for encoding a large set takes its time, and a day
                where a judge writes.
            progress: Called as entries are done, from the client's thread; an exception ends the call.

        Raises:
            InvalidRequest: The message names the argument.
            GradewireError: Which one says why; what was done is kept.
        """
        check_rows("entries", entries)
        options = ScoreOptions(metrics, preset, synthetic, model, None, deadline_s)
        return await self._core.prepare(list(entries), options, progress, generate)

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
        """Scores later: takes a snapshot of the items and returns at once; never blocks, never raises.

        All failures are in the future: Overloaded when more than `max_pending_items` or `max_pending_bytes` would be
        pending, InvalidRequest for wrong arguments. In async code: `await asyncio.wrap_future(client.submit(…))`.

        Args:
            items: As `score`.
            metrics: As `score`.
            preset: As `score`.
            synthetic: As `score`.
            model: As `score`.
            judge: As `score`.
            reference_set: As `score`.
            deadline_s: As `score`; runs from when its turn comes.
            callback: Called with the future when it is done, on a thread for callbacks; its exceptions are logged.
        """
        options = ScoreOptions(metrics, preset, synthetic, model, reference_set, deadline_s, judge)
        return self._core.submit(asyncio.get_running_loop, items, options, callback)

    async def flush(self, timeout_s: float | None = None) -> bool:
        """Waits until all that is submitted is done, callbacks included; False when timeout_s ran out before.

        Must not be called from a callback of `submit`, which it would wait for.
        """
        return await self._core.flush(timeout_s)

    async def models(self, *, deadline_s: float | None = None) -> ModelList:
        """Models, metrics and limits of the server."""
        return await self._core.models(deadline_s)

    async def close(self) -> None:
        """Finishes what was submitted, for at most a minute, and closes the connection; closing twice is fine."""
        await self._core.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()


def connect(address: str, *, token: str | None, tls: Tls | None) -> Transport:
    """The transport over gRPC, which is imported here so that `import gradewire` stays fast.

    Raises:
        InvalidRequest: An argument is of a wrong type; gRPC itself would say so at the first call only, or never.
    """
    wanted = (
        ("address", address, str, "HOST:PORT"),
        ("token", token, str | None, "a string"),
        ("tls", tls, Tls | None, "gradewire.Tls(…)"),
    )
    for name, value, kind, hint in wanted:
        if not isinstance(value, kind):
            raise InvalidRequest(f"{name} is a {type(value).__name__}: give {hint}")
    from gradewire._transport.grpc_transport import GrpcTransport  # noqa: PLC0415 - as the docstring says

    return GrpcTransport(address, token=token, tls=tls)


async def _flatten(stream: Stream) -> AsyncGenerator[ItemScores]:
    async with aclosing(stream.run()) as batches:
        async for batch in batches:
            for scores in batch:
                yield scores


async def _turns(items: Iterable[ItemLike] | AsyncIterable[ItemLike]) -> AsyncIterator[ItemLike]:
    if isinstance(items, AsyncIterable):
        async for item in items:
            yield item
        return
    for position, item in enumerate(items, 1):
        yield item
        if position % _ITEMS_PER_TURN == 0:
            await asyncio.sleep(0)
