"""Everything the server does, without a transport: servicers and embedded clients call it, so both score alike."""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from typing import Any, Final

from gradewire_proto.v1 import models_pb2, references_pb2, scoring_pb2
from gradewire_server.domain.metric import Metric
from gradewire_server.domain.ports import ModelStatus, Ports
from gradewire_server.domain.result import Failure, Status
from gradewire_server.metrics.registry import REGISTRY
from gradewire_server.requests.convert import read_item, read_reference_set
from gradewire_server.requests.limits import Deadlines, Limits, reply_margin_s
from gradewire_server.requests.models import list_models
from gradewire_server.requests.plan import MetricPlan, Planner
from gradewire_server.requests.prepare import CountSynthetic, prepare
from gradewire_server.requests.prompts.inline import read_ahead
from gradewire_server.requests.replies import CountResult, ItemReplies, count_nothing
from gradewire_server.requests.stream import ScoreStream
from gradewire_server.requests.yield_budget import Pace
from gradewire_server.rpc.admission import Admission, Capacity
from gradewire_server.rpc.errors import DeadlineExceededError, InvalidRequestError, ModelReplacedError
from gradewire_server.scoring import Scorer

_log = logging.getLogger(__name__)

_LATE: Final = Failure(Status.TIMEOUT, "the deadline passed before the score was done; allow more time or send less")


class Dataplane:
    """Scores, prepares and lists; one per process, used on one event loop.

    Every `deadline_s` is seconds from now; None is the default, and more than the maximum is cut to it. Work that is
    not done shortly before the deadline is answered as TIMEOUT results beside those that are. All calls may be
    cancelled.
    """

    def __init__(  # noqa: PLR0913 - the parts are independent, and all but two have defaults
        self,
        scorer: Scorer,
        ports: Ports,
        *,
        limits: Limits | None = None,
        deadlines: Deadlines | None = None,
        admission: Admission | None = None,
        metrics: Mapping[str, Metric[Any]] = REGISTRY,
        count_result: CountResult = count_nothing,
        count_synthetic: CountSynthetic | None = None,
    ) -> None:
        self._scorer = scorer
        self._ports = ports
        self.limits = limits or Limits()
        self.deadlines = deadlines or Deadlines()
        self.admission = admission or Admission(Capacity())
        self.count_result = count_result
        self.count_synthetic = count_synthetic
        self._metrics = metrics
        self._planner = Planner(ports.encoders, ports.judge_models, metrics)
        self._unwinding: set[asyncio.Task[None]] = set()

    async def close(self) -> None:
        """Waits for cancelled work to end; to be called before the engine is closed."""
        if self._unwinding:
            await asyncio.wait(self._unwinding)

    async def score(
        self, request: scoring_pb2.ScoreRequest, *, deadline_s: float | None = None, size_bytes: int | None = None
    ) -> scoring_pb2.ScoreResponse:
        """Scores items x metrics; the reply is in the order of the items.

        Args:
            request: As gradewire.v1.Scoring.Score says.
            deadline_s: Seconds from now.
            size_bytes: Size of the request on the wire where it is known, which saves measuring it.

        Raises:
            InvalidRequestError: Names the field at fault.
            NothingLoadedError: No metric of the request can be computed here.
            OverloadedError: Too many items are in flight.
            DeadlineExceededError: The deadline passed before scoring began.
        """
        started = time.monotonic()
        await read_ahead(request.metrics[: self.limits.max_metrics_per_request])
        plans = self._plans(request.metrics, len(request.items))
        reference_set = read_reference_set(request.reference_set)
        reply = scoring_pb2.ScoreResponse(provenance=[plan.provenance_in(reference_set) for plan in plans])
        if request.items:
            with self.admission.items.hold(len(request.items)):
                size_bytes = request.ByteSize() if size_bytes is None else size_bytes
                total_s = self._total_s(deadline_s)
                await self._score_items(request, reply, plans, size_bytes, started + total_s)
        reply.server_s = time.monotonic() - started
        return reply

    def score_stream(
        self, requests: AsyncIterator[scoring_pb2.ScoreStreamRequest], *, deadline_s: float | None = None
    ) -> AsyncGenerator[scoring_pb2.ScoreStreamResponse]:
        """Scores a stream; results come as they are done. Errors as `score`, raised while iterating.

        Without `deadline_s` the stream may run for as long as it likes; the items of each message get the default.
        """
        stream = ScoreStream(self, self._scorer, deadline_s=deadline_s)
        return stream.run(requests)

    def prepare(
        self, request: references_pb2.PrepareRequest, *, deadline_s: float | None = None
    ) -> AsyncGenerator[references_pb2.PrepareProgress]:
        """Registers references and fills the cache, telling of progress; errors as `score`, raised while iterating."""
        return prepare(self, self._scorer, request, deadline_s=deadline_s)

    async def list_models(self) -> models_pb2.ListModelsResponse:
        """Models, metrics and limits of this server."""
        # Asked for none, the lexicon says whether it could look any up.
        synonyms = await self._ports.lexicon.synonyms(())
        without_synonyms = synonyms.message if isinstance(synonyms, Failure) else ""
        return list_models(
            self._ports.encoders,
            self._ports.judge_models,
            self._metrics,
            self.limits,
            without_synonyms=without_synonyms,
        )

    def plan(self, metrics: Any, path: str = "metrics") -> list[MetricPlan]:
        """Resolves the metrics of a call that names at least one; errors as `score`."""
        if not metrics:
            raise InvalidRequestError(path, "at least one is needed")
        if len(metrics) > self.limits.max_metrics_per_request:
            raise InvalidRequestError(
                path,
                f"{len(metrics)} of them, at most {self.limits.max_metrics_per_request} are allowed in one request",
            )
        return self._planner.plan(metrics, path)

    def judge(self, written: str, path: str) -> ModelStatus | Failure:
        """The judge that NAME, NAME@DIGEST or "" stands for, or why it cannot be used."""
        return self._planner.judge(written, path)

    def check_models(self, plans: Sequence[MetricPlan]) -> None:
        """Raises ModelReplacedError where a model is not the one any more that a plan's provenance names."""
        for plan in plans:
            provenance = plan.provenance
            if not provenance.model_digest:
                continue
            models = self._ports.judge_models if plan.judged else self._ports.encoders
            now = models.status(provenance.model)
            if not isinstance(now, Failure) and now.digest != provenance.model_digest:
                raise ModelReplacedError(
                    f"model {provenance.model} was replaced: its digest was {provenance.model_digest}, it is "
                    f"{now.digest} now; results sent so far stand, send the other items again on a new stream"
                )

    def check_count(self, count: int, path: str) -> None:
        """Raises InvalidRequestError where one message brings too many items or entries."""
        if count > self.limits.max_items_per_request:
            raise InvalidRequestError(
                path, f"{count} of them, at most {self.limits.max_items_per_request} are allowed in one message"
            )

    def _plans(self, metrics: Any, item_count: int) -> list[MetricPlan]:
        self.check_count(item_count, "items")
        return self.plan(metrics) if metrics or item_count else []

    def _total_s(self, deadline_s: float | None) -> float:
        return min(self.deadlines.default_s if deadline_s is None else max(0.0, deadline_s), self.deadlines.max_s)

    async def _score_items(
        self,
        request: scoring_pb2.ScoreRequest,
        reply: scoring_pb2.ScoreResponse,
        plans: list[MetricPlan],
        size_bytes: int,
        deadline_s: float,
    ) -> None:
        reference_set = read_reference_set(request.reference_set)
        replies = ItemReplies(
            reply.items,
            [plan.provenance.name for plan in plans],
            diagnostics=not request.omit_diagnostics,
            count_result=self.count_result,
        )
        check_bytes = size_bytes > self.limits.max_item_bytes
        pace = Pace(size_bytes)
        for message in request.items:
            if pace.is_over(message):
                await asyncio.sleep(0)
            replies.add(message, read_item(message, self.limits, check_bytes=check_bytes))
        left_s = deadline_s - time.monotonic()
        if left_s <= 0:
            raise DeadlineExceededError("the deadline passed before scoring began")
        margin_s = reply_margin_s(left_s, len(replies.items) * len(plans))
        scoring = asyncio.create_task(
            self._scorer.score(
                replies.items,
                [plan.request for plan in plans],
                reference_set=reference_set,
                # Earlier than ours by another margin: what the engine has by then is still scored.
                deadline_s=deadline_s - 2 * margin_s,
                emit=replies.emit,
            )
        )
        try:
            await asyncio.wait((scoring,), timeout=max(0.0, deadline_s - margin_s - time.monotonic()))
        finally:
            if not scoring.done():
                self._unwind(scoring)
        if scoring in self._unwinding:
            replies.close(_LATE)
        else:
            scoring.result()

    def _unwind(self, scoring: asyncio.Task[None]) -> None:
        """Cancels work that nobody waits for any more; how long it takes to end is not the caller's affair."""
        scoring.cancel()
        self._unwinding.add(scoring)
        scoring.add_done_callback(self._unwound)

    def _unwound(self, scoring: asyncio.Task[None]) -> None:
        self._unwinding.discard(scoring)
        if not scoring.cancelled() and (error := scoring.exception()) is not None:
            _log.error("scoring failed after its deadline", exc_info=error)
