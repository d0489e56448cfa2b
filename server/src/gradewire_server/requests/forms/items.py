"""Scoring.Score and ScoreStream: items by metrics."""

from collections.abc import Sequence
from typing import Any, ClassVar, Final

from typing_extensions import override

from gradewire_proto.v1 import scoring_pb2, types_pb2
from gradewire_server.domain.item import Item
from gradewire_server.domain.parts import JudgeParts, SmileParts, VqaParts
from gradewire_server.domain.result import Failure, ScoredResult
from gradewire_server.requests.context import RequestContext
from gradewire_server.requests.convert import fill_result, read_item
from gradewire_server.requests.forms.form import CallForm
from gradewire_server.requests.planning.metric_plan import MetricPlan
from gradewire_server.settings.limits import Limits


class ItemForm(CallForm):
    """Each item has a result for each metric."""

    rows: ClassVar[str] = "items"
    least_result_bytes: ClassVar[int] = 13  # a status and a score in their frame

    @override
    async def plan(self, context: RequestContext, asked: Any, path: str = "") -> list[MetricPlan]:
        nothing = isinstance(asked, scoring_pb2.ScoreRequest) and not (asked.metrics or asked.items)
        return [] if nothing else await context.plan(asked.metrics, f"{path}metrics")

    @override
    def reply(self, provenance: Sequence[types_pb2.Provenance]) -> scoring_pb2.ScoreResponse:
        return scoring_pb2.ScoreResponse(provenance=provenance)

    @override
    def streamed(self, provenance: Sequence[types_pb2.Provenance] = ()) -> scoring_pb2.ScoreStreamResponse:
        return scoring_pb2.ScoreStreamResponse(provenance=provenance)

    @override
    def read(self, message: types_pb2.Item, limits: Limits, *, check_bytes: bool) -> Item | Failure:
        return read_item(message, limits, check_bytes=check_bytes)

    @override
    def add_result(self, row: scoring_pb2.ItemResult) -> types_pb2.MetricResult:
        return row.results.add()

    @override
    def complete(self, row: scoring_pb2.ItemResult) -> None:
        row.complete = True

    @override
    def blank_result(self) -> types_pb2.MetricResult:
        return types_pb2.MetricResult()

    @override
    def fill(
        self, result: types_pb2.MetricResult, metric_index: int, scored: ScoredResult, *, diagnostics: bool
    ) -> None:
        fill_result(result, metric_index, scored, diagnostics=diagnostics)

    @override
    def text_characters(self, scored: ScoredResult) -> int:
        parts = scored.result.parts
        if isinstance(parts, SmileParts):
            return len(parts.best_window)
        if isinstance(parts, JudgeParts):
            return len(parts.reason)
        return len(parts.compared_prediction) if isinstance(parts, VqaParts) else 0


ITEMS: Final = ItemForm()
