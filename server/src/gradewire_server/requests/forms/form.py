"""The seam between what all scoring calls do and the messages of one kind of them."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from google.protobuf.message import Message

from gradewire_proto.v1 import types_pb2
from gradewire_server.domain.item import Item
from gradewire_server.domain.result import Failure, ScoredResult
from gradewire_server.requests.context import RequestContext
from gradewire_server.requests.planning.metric_plan import MetricPlan
from gradewire_server.settings.limits import Limits


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
