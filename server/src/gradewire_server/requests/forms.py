"""The two forms of scoring calls, items by metrics and pairs by a comparison, and the reference set they name."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from google.protobuf.message import Message
from typing_extensions import override

from gradewire_proto.parts import JudgeParts, SmileParts, VqaParts
from gradewire_proto.v1 import judging_pb2, scoring_pb2, types_pb2
from gradewire_proto.wire_rules import split_pin
from gradewire_server.domain.items import (
    Compared,
    Failure,
    Item,
    OrderVerdict,
    Pair,
    ScoredResult,
    Status,
    quoted,
    shortened,
)
from gradewire_server.requests.context import RequestContext
from gradewire_server.requests.convert import (
    MAX_PART_CHARACTERS,
    fill_cost,
    fill_outcome,
    fill_result,
    read_item,
    read_reference_set,
    read_row,
)
from gradewire_server.requests.errors import InvalidRequestError, SetUnavailableError
from gradewire_server.requests.plan import MetricPlan
from gradewire_server.settings.limits import Limits


@dataclass(frozen=True, slots=True)
class NamedSet:
    """The set of a call that scores.

    Attributes:
        name: Without a digest; empty where the request names none.
        corpus_digest: Of its corpus as the call begins, 32 hex digits; empty where no metric counts over one, or there
            is none.
    """

    name: str
    corpus_digest: str = ""


_NO_SET: Final = NamedSet("")


async def find_set(
    context: RequestContext, written: str, plans: Iterable[MetricPlan], path: str = "reference_set"
) -> NamedSet:
    """Reads the name of a set, and finds out which corpus it is where that matters.

    Raises:
        InvalidRequestError: It cannot be a name, or the set has another corpus than the digest says.
        SetUnavailableError: A digest is said, and the store does not answer.
    """
    if not written:
        return _NO_SET
    name, digest = split_pin(written)
    name = read_reference_set(name, path)
    if not (digest or any(plan.counts_prepared for plan in plans)):
        return NamedSet(name)
    found = await context.scorer.corpus_digest(name)
    if not isinstance(found, Failure):
        if not found.startswith(digest):
            raise InvalidRequestError(path, f"the corpus of {quoted(name)} is {found} here, {digest} is asked for")
        return NamedSet(name, found)
    if not digest:
        return NamedSet(name)  # each result says what is wrong
    if found.status is Status.NOT_PREPARED:
        raise InvalidRequestError(
            path, f"{quoted(name)} has no whole corpus here, {digest} is asked for: {found.message}"
        )
    raise SetUnavailableError(f"{path}: {found.message}")


class CallForm(ABC):
    """How requests and replies of one kind are made; the messages of each are its own.

    Attributes:
        rows: Name of the list of items or pairs, in requests and replies alike.
        least_result_bytes: Of the shortest result of a metric that runs.
    """

    rows: ClassVar[str]
    least_result_bytes: ClassVar[int]

    def rows_of(self, request: Any) -> Sequence[Any]:
        """What a request brings; of a stream, what one of its messages does."""
        rows: Sequence[Any] = getattr(request, self.rows)
        return rows

    @abstractmethod
    async def plan(self, context: RequestContext, asked: Any, path: str = "") -> list[MetricPlan]:
        """Resolves what is asked; raises as `RequestContext.plan`.

        Args:
            context: Knows what there is.
            asked: A request, or the config of a stream.
            path: What stands before the names of its fields in messages.
        """

    @abstractmethod
    def reply(self, provenance: Sequence[types_pb2.Provenance]) -> Any:
        """The reply of a unary call, without rows."""

    @abstractmethod
    def streamed(self, provenance: Sequence[types_pb2.Provenance] = ()) -> Any:
        """A message of a stream, without rows."""

    @abstractmethod
    def read(self, message: Any, limits: Limits, *, check_bytes: bool) -> Item | Failure:
        """What is graded; arguments as `read_item`."""

    def add_row(self, reply: Any, index: int, identifier: str) -> Any:
        """Adds a row without results to a reply."""
        return getattr(reply, self.rows).add(index=index, id=identifier)

    @abstractmethod
    def add_result(self, row: Any) -> Any:
        """Adds a result to a row; the message that `fill` writes."""

    @abstractmethod
    def complete(self, row: Any) -> None:
        """Marks a row to which no further result will come."""

    @abstractmethod
    def blank_result(self) -> Message:
        """A message that `fill` writes, in no reply."""

    @abstractmethod
    def fill(self, result: Any, metric_index: int, scored: ScoredResult, *, diagnostics: bool) -> None:
        """Writes a result in place; cost only with `diagnostics`."""

    @abstractmethod
    def text_characters(self, scored: ScoredResult) -> int:
        """Characters of those parts of a result that hold text of the row or of a judge, which alone can be long."""


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
