"""Puts the scorer's results into the items of a unary reply, whose size is known at any time."""

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from gradewire_proto.v1 import types_pb2
from gradewire_server.domain.item import Item
from gradewire_server.domain.result import Failure, MetricResult, ScoredResult, Status
from gradewire_server.requests.convert import fill_result, reply_id
from gradewire_server.requests.counters import CountResult
from gradewire_server.requests.unary.reply_size import ReplySize

if TYPE_CHECKING:
    from google.protobuf.internal.containers import RepeatedCompositeFieldContainer

    from gradewire_proto.v1 import scoring_pb2

_log = logging.getLogger(__name__)


def log_internal(metric: str, result: MetricResult) -> None:
    """Logs a result that is INTERNAL: where it arose, in a run for many calls, its request id was not known."""
    if result.status is Status.INTERNAL:
        _log.error("a result of %s is INTERNAL: %s", metric, result.message)


class ItemReplies:
    """Fills the items of a reply in place: a slot per item and metric, in order, whenever its result is done.

    Args:
        replies: Of the reply.
        metric_names: Of the request, in its order.
        size: Counts what is put in; a result that it has no room for is left out, and so are all that come later.
        diagnostics: Whether results tell what they cost.
        count_result: Told of every result.

    Attributes:
        items: Those that are to be scored.
        on_overflow: Called once, with the first result that finds no room.
    """

    def __init__(
        self,
        replies: "RepeatedCompositeFieldContainer[scoring_pb2.ItemResult]",
        metric_names: Sequence[str],
        size: ReplySize,
        *,
        diagnostics: bool,
        count_result: CountResult,
    ) -> None:
        self.items: list[Item] = []
        self.on_overflow: Callable[[], object] = lambda: None
        self._replies = replies
        self._size = size
        self._metric_names = metric_names
        self._count_result = count_result
        self._diagnostics = diagnostics
        self._scored: list[scoring_pb2.ItemResult] = []
        self._closed = False

    def add(self, message: types_pb2.Item, item: Item | Failure) -> None:
        """Makes room for the next item of the request; one that was refused gets its results at once."""
        reply = self._replies.add(index=len(self._replies), id=reply_id(message), complete=True)
        self._size.add_item(reply)
        for _ in self._metric_names:
            reply.results.add()
        if isinstance(item, Item):
            self.items.append(item)
            self._scored.append(reply)
            return
        refused = ScoredResult(MetricResult.failed(item))
        for index, name in enumerate(self._metric_names):
            self._count_result(name, item.status)
            self._fill(reply.results[index], index, refused, diagnostics=False)

    def emit(self, item_index: int, metric_index: int, scored: ScoredResult) -> None:
        """Takes a result of the `item_index`-th of `items`; what comes after `close` is too late."""
        if self._closed:
            return
        log_internal(self._metric_names[metric_index], scored.result)
        self._count_result(self._metric_names[metric_index], scored.result.status)
        result = self._scored[item_index].results[metric_index]
        self._fill(result, metric_index, scored, diagnostics=self._diagnostics)

    def close(self, failure: Failure) -> None:
        """Puts `failure` wherever there is no result yet."""
        self._closed = True
        late = ScoredResult(MetricResult.failed(failure))
        for reply in self._scored:
            for index, result in enumerate(reply.results):
                if result.status == types_pb2.STATUS_UNSPECIFIED:
                    self._count_result(self._metric_names[index], failure.status)
                    self._fill(result, index, late, diagnostics=False)

    def _fill(self, result: types_pb2.MetricResult, index: int, scored: ScoredResult, *, diagnostics: bool) -> None:
        if self._size.overflowed:
            return
        fill_result(result, index, scored, diagnostics=diagnostics)
        if not self._size.add_result(result):
            self._closed = True
            self.on_overflow()
