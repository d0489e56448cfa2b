"""Puts the scorer's results into the items of a unary reply, whose size is known at any time."""

import logging
from collections.abc import Callable, Sequence
from typing import Any

from gradewire_proto.conventions.spans import tell_result
from gradewire_proto.v1 import judging_pb2, types_pb2
from gradewire_server.domain.item import Item
from gradewire_server.domain.result import Failure, MetricResult, ScoredResult, Status
from gradewire_server.requests.convert import reply_id
from gradewire_server.requests.counters import CountResult
from gradewire_server.requests.unary.reply_size import ReplySize

_log = logging.getLogger(__name__)


def log_internal(metric: str, result: MetricResult) -> None:
    """Logs a result that is INTERNAL: where it arose, in a run for many calls, its request id was not known."""
    if result.status is Status.INTERNAL:
        _log.error("a result of %s is INTERNAL: %s", metric, result.message)


class ItemReplies:
    """Fills the items of a reply in place: a slot per item and metric, in order, whenever its result is done.

    Args:
        reply: Without rows.
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
        reply: Any,
        metric_names: Sequence[str],
        size: ReplySize,
        *,
        diagnostics: bool,
        count_result: CountResult,
    ) -> None:
        self.items: list[Item] = []
        self.on_overflow: Callable[[], object] | None = None
        self._form = size.form
        self._reply = reply
        self._count = 0
        self._size = size
        self._metric_names = metric_names
        self._count_result = count_result
        self._diagnostics = diagnostics
        self._scored: list[list[Any]] = []
        self._indices: list[int] = []
        self._closed = False

    def add(self, message: types_pb2.Item | judging_pb2.Pair, item: Item | Failure) -> None:
        """Makes room for the next item or pair of the request; one that was refused gets its results at once."""
        row = self._form.add_row(self._reply, self._count, reply_id(message))
        self._form.complete(row)
        self._count += 1
        self._size.add_item(row)
        results = [self._form.add_result(row) for _ in self._metric_names]
        if isinstance(item, Item):
            self.items.append(item)
            self._scored.append(results)
            self._indices.append(self._count - 1)
            return
        refused = ScoredResult(MetricResult.failed(item))
        for index, name in enumerate(self._metric_names):
            self._tell(name, self._count - 1, refused.result)
            self._fill(results[index], index, refused, diagnostics=False)

    def emit(self, item_index: int, metric_index: int, scored: ScoredResult) -> None:
        """Takes a result of the `item_index`-th of `items`; what comes after `close` is too late."""
        if self._closed:
            return
        log_internal(self._metric_names[metric_index], scored.result)
        self._tell(self._metric_names[metric_index], self._indices[item_index], scored.result)
        result = self._scored[item_index][metric_index]
        self._fill(result, metric_index, scored, diagnostics=self._diagnostics)

    def close(self, failure: Failure) -> None:
        """Puts `failure` wherever there is no result yet."""
        self._closed = True
        late = ScoredResult(MetricResult.failed(failure))
        for item_index, results in zip(self._indices, self._scored, strict=True):
            for index, result in enumerate(results):
                if result.status == types_pb2.STATUS_UNSPECIFIED:
                    self._tell(self._metric_names[index], item_index, late.result)
                    self._fill(result, index, late, diagnostics=False)

    def _tell(self, metric: str, item_index: int, result: MetricResult) -> None:
        self._count_result(metric, result.status)
        tell_result(metric, item_index, result)

    def _fill(self, result: Any, index: int, scored: ScoredResult, *, diagnostics: bool) -> None:
        if self._size.overflowed:
            return
        self._form.fill(result, index, scored, diagnostics=diagnostics)
        if not self._size.add_result(result):
            self._closed = True
            if self.on_overflow is not None:
                self.on_overflow()
