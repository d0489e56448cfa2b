"""What both faces of the client stand on: one transport, the running calls, the queue of submissions."""

import asyncio
from collections.abc import AsyncIterable, Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace

from gradewire._calls.arguments import (
    ClientSettings,
    check_deadline,
    check_generate,
    check_metrics,
    check_progress,
    check_text,
    check_timeout,
)
from gradewire._calls.batch import Batch, ProgressCallback, ScoreCall
from gradewire._calls.chunks import Deadline
from gradewire._calls.corpus import check_streamed
from gradewire._calls.prepare import Preparation, PrepareCall, PrepareCallback
from gradewire._calls.stream import Stream, StreamCall
from gradewire._calls.submissions import Submissions, SubmitCallback
from gradewire.errors import ClientClosed
from gradewire.items import ItemLike
from gradewire.metric_types import Preset, Synthetic
from gradewire.metric_types.choice import MetricChoice, MetricDefaults, MetricsLike, choose_metrics
from gradewire.model_list import Limits, ModelList, decode_model_list
from gradewire.preparation import PrepareReport, ReferenceEntryLike
from gradewire.score_report import ScoreReport
from gradewire.transport import Transport

# Encoding a large reference set takes its time, and what was done before a deadline is kept anyway.
PREPARE_DEADLINE_S = 3600.0
# A judge on a CPU writes a sentence or two in a second.
GENERATE_DEADLINE_S = 24 * 3600.0
# A judge takes a second or more for an item: a call of many, and the next result of a stream.
JUDGE_DEADLINE_S = 3600.0
JUDGE_STALL_S = 600.0
# What close() gives to submissions that are pending.
DRAIN_S = 60.0


@dataclass(frozen=True, slots=True)
class ScoreOptions:
    """The arguments that most calls share; documented at `AsyncClient.score`."""

    metrics: MetricsLike
    preset: Preset | None = None
    synthetic: Synthetic | None = None
    model: str | None = None
    reference_set: str | None = None
    deadline_s: float | None = None
    judge: str | None = None


class Core:
    """The calls, on one event loop.

    Args:
        transport: Carries them; closed with the core.
        settings: Of the client.
    """

    def __init__(self, transport: Transport, settings: ClientSettings) -> None:
        self._transport = transport
        self._deadline_s = check_deadline(settings.deadline_s)
        self._submissions = Submissions(settings.max_pending_items, settings.max_pending_bytes)
        self._limits: Limits | None = None
        self._closed = False

    async def score(
        self, items: Sequence[ItemLike], options: ScoreOptions, progress: ProgressCallback | None = None
    ) -> ScoreReport:
        """See `AsyncClient.score`."""
        check_progress(progress)
        choice = self._choose(options)
        deadline_s = options.deadline_s
        if deadline_s is None and choice.asks_judge:
            deadline_s = max(self._deadline_s, JUDGE_DEADLINE_S)
        call = ScoreCall(choice, choice.reference_set, self._deadline(deadline_s), progress)
        return await Batch(self._transport, call, items).run(self._known_limits)

    def stream(self, items: AsyncIterable[ItemLike], options: ScoreOptions) -> Stream:
        """See `AsyncClient.score_stream`; raises for wrong arguments, runs nothing yet."""
        choice = self._choose(options)
        check_streamed(choice.specs)
        stall_s = max(self._deadline_s, JUDGE_STALL_S) if choice.asks_judge else self._deadline_s
        if options.deadline_s is not None:
            stall_s = check_deadline(options.deadline_s)
        call = StreamCall(choice, choice.reference_set, stall_s)
        return Stream(self._transport, call, items, self._known_limits)

    async def prepare(
        self,
        entries: Sequence[ReferenceEntryLike],
        options: ScoreOptions,
        progress: PrepareCallback | None,
        generate: object,
    ) -> PrepareReport:
        """See `AsyncClient.prepare`."""
        check_progress(progress)
        generation = check_generate(generate)
        if generation is not None and options.synthetic is None:
            options = replace(options, synthetic="prepared")
        usual_s = PREPARE_DEADLINE_S if generation is None else GENERATE_DEADLINE_S
        deadline = self._deadline(usual_s if options.deadline_s is None else options.deadline_s)
        call = PrepareCall(self._choose(options), deadline, progress, generation)
        return await Preparation(self._transport, call, entries).run(self._known_limits)

    def submit(
        self,
        loop: Callable[[], asyncio.AbstractEventLoop],
        items: Iterable[ItemLike],
        options: ScoreOptions,
        callback: SubmitCallback | None,
    ) -> Future[ScoreReport]:
        """See `AsyncClient.submit`; from any thread, `loop` gives the core's."""
        return self._submissions.add(loop, items, lambda taken: self.score(taken, options), callback)

    async def flush(self, timeout_s: float | None) -> bool:
        """See `AsyncClient.flush`."""
        check_timeout(timeout_s)
        return await self._submissions.flush(timeout_s)

    async def models(self, deadline_s: float | None = None) -> ModelList:
        """See `AsyncClient.models`."""
        self._check_open()
        reply = await self._transport.list_models(timeout_s=self._deadline(deadline_s).remaining_s())
        listed = decode_model_list(reply)
        self._limits = listed.limits
        return listed

    async def close(self) -> None:
        """See `AsyncClient.close`."""
        if not self._closed:
            await self._submissions.close(DRAIN_S)
            self._closed = True
            await self._transport.close()

    def _check_open(self) -> None:
        if self._closed:
            raise ClientClosed("this client was closed: make a new one")

    def _choose(self, options: ScoreOptions) -> MetricChoice:
        self._check_open()
        check_metrics(options.metrics)
        for name in ("preset", "synthetic", "model", "judge", "reference_set"):
            check_text(name, getattr(options, name))
        defaults = MetricDefaults(
            options.preset, options.synthetic, options.model, options.reference_set, options.judge
        )
        return choose_metrics(options.metrics, defaults)

    def _deadline(self, deadline_s: float | None) -> Deadline:
        return Deadline(self._deadline_s if deadline_s is None else check_deadline(deadline_s))

    async def _known_limits(self) -> Limits:
        return self._limits if self._limits is not None else (await self.models()).limits
