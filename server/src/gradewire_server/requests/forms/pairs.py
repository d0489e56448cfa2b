"""Judging.Compare and CompareStream: pairs by one comparison."""

from collections.abc import Sequence
from typing import Any, ClassVar, Final

from typing_extensions import override

from gradewire_proto.v1 import judging_pb2, types_pb2
from gradewire_server.domain.comparison import Compared, OrderVerdict
from gradewire_server.domain.item import Item, Pair
from gradewire_server.domain.quoting import shortened
from gradewire_server.domain.result import Failure, ScoredResult
from gradewire_server.requests.context import RequestContext
from gradewire_server.requests.convert import MAX_PART_CHARACTERS, fill_cost, fill_outcome, read_row
from gradewire_server.requests.forms.form import CallForm
from gradewire_server.requests.planning.metric_plan import MetricPlan
from gradewire_server.settings.limits import Limits


class PairForm(CallForm):
    """Each pair has one result."""

    rows: ClassVar[str] = "pairs"
    least_result_bytes: ClassVar[int] = 4  # a status in its frame

    @override
    async def plan(self, context: RequestContext, asked: Any, path: str = "") -> list[MetricPlan]:
        return [await context.plan_comparison(asked.parameters, f"{path}parameters")]

    @override
    def reply(self, provenance: Sequence[types_pb2.Provenance]) -> judging_pb2.CompareResponse:
        return judging_pb2.CompareResponse(provenance=provenance[0])

    @override
    def streamed(self, provenance: Sequence[types_pb2.Provenance] = ()) -> judging_pb2.CompareStreamResponse:
        return judging_pb2.CompareStreamResponse(provenance=provenance[0] if provenance else None)

    @override
    def read(self, message: judging_pb2.Pair, limits: Limits, *, check_bytes: bool) -> Item | Failure:
        return read_row(message, limits, check_bytes=check_bytes, make=_pair)

    @override
    def add_result(self, row: judging_pb2.PairResult) -> judging_pb2.PairResult:
        return row

    @override
    def complete(self, row: judging_pb2.PairResult) -> None:
        del row  # it has one result, so that it is complete once it is there

    @override
    def blank_result(self) -> judging_pb2.PairResult:
        return judging_pb2.PairResult()

    @override
    def fill(
        self, result: judging_pb2.PairResult, metric_index: int, scored: ScoredResult, *, diagnostics: bool
    ) -> None:
        del metric_index  # there is one
        fill_outcome(result, scored.result)
        if scored.result.compared is not None:
            _fill_compared(result, scored.result.compared)
        if diagnostics:
            fill_cost(result, scored)

    @override
    def text_characters(self, scored: ScoredResult) -> int:
        compared = scored.result.compared
        return 0 if compared is None else sum(len(order.reason) for order in compared.orders)


PAIRS: Final = PairForm()


def _pair(message: judging_pb2.Pair, texts: dict[str, Any]) -> Pair:
    del message
    return Pair(prediction=texts.pop("answer_a"), rival=texts.pop("answer_b"), **texts)


def _fill_compared(result: judging_pb2.PairResult, compared: Compared) -> None:
    if compared.winner is not None:
        result.winner = int(compared.winner)  # type: ignore[assignment]
    result.decided_by = compared.decided_by
    _fill_probabilities(result, compared.probabilities)
    for order in compared.orders:
        _fill_order(result.orders.add(), order)
    result.prompt_tokens = compared.prompt_tokens or 0
    result.generated_tokens = compared.generated_tokens or 0


def _fill_order(message: judging_pb2.OrderVerdict, order: OrderVerdict) -> None:
    message.first = int(order.first)  # type: ignore[assignment]
    if order.winner is not None:
        message.winner = int(order.winner)  # type: ignore[assignment]
    _fill_probabilities(message, order.probabilities)
    if order.label_mass is not None:
        message.label_mass = order.label_mass
    message.reason = shortened(order.reason, MAX_PART_CHARACTERS)
    message.extracted = order.extracted


def _fill_probabilities(
    message: judging_pb2.PairResult | judging_pb2.OrderVerdict, probabilities: tuple[float, float, float] | None
) -> None:
    if probabilities is not None:
        message.probability_a, message.probability_b, message.probability_tie = probabilities
