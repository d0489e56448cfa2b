"""The size of a unary reply: estimated from below before anything is computed, then counted result by result.

So a request whose reply cannot fit is refused before work is done for it, and the memory of any other is bounded: what
is built of its reply is never larger than a message may be.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from google.protobuf.message import Message

from gradewire_server.domain.result import Failure, MetricResult, ScoredResult
from gradewire_server.requests.errors import InvalidRequestError
from gradewire_server.requests.forms.form import CallForm

if TYPE_CHECKING:
    from gradewire_server.scoring import MetricRequest

_FRAME_BYTES: Final = 2
"""Of a message within another: its tag, and its length where that is small."""
_LARGE_FRAME_BYTES: Final = 5
"""The same with the longest length that a reply can have."""
_SMALL: Final = 128
"""Bytes from which a length takes more than one."""
_LEAST_ITEM_BYTES: Final = 4
"""The frame of an item, and `complete`."""


class ReplySize:
    """Counts the bytes of one reply.

    Args:
        max_bytes: Of the whole reply.
        items: Of the request.
        provenance_bytes: What stands in the reply beside the items.
        form: Of the call.

    Attributes:
        form: As given.
        overflowed: Whether more was to be put in than there is room for.
    """

    def __init__(self, max_bytes: int, items: int, provenance_bytes: int, form: CallForm) -> None:
        self._max_bytes = max_bytes
        self.form = form
        self._items = items
        self._fixed_bytes = provenance_bytes
        self._bytes = provenance_bytes
        self._results = 0
        self._metrics = 1
        self.overflowed = False

    def check_room_for(self, requests: Sequence["MetricRequest | Failure"]) -> None:
        """Raises InvalidRequestError where the reply cannot fit, however short the results of metrics that run are.

        A metric that failed has the same result for each item, so that its size is known.
        """
        self._metrics = len(requests)
        per_item = _LEAST_ITEM_BYTES + sum(self._least_bytes(index, request) for index, request in enumerate(requests))
        if self._fixed_bytes + self._items * per_item > self._max_bytes:
            raise self._too_large(per_item)

    def add_item(self, row: Message) -> None:
        """Counts an item that has no results yet."""
        self._add(_LARGE_FRAME_BYTES + row.ByteSize())

    def add_result(self, result: Message) -> bool:
        """Counts a result; whether there was room for it."""
        size_bytes = result.ByteSize()
        self._results += 1
        self._add(size_bytes + (_FRAME_BYTES if size_bytes < _SMALL else _LARGE_FRAME_BYTES))
        return not self.overflowed

    def check(self) -> None:
        """Raises InvalidRequestError where the reply has become too large."""
        if self.overflowed:
            done = max(1.0, self._results / max(1, self._metrics))
            raise self._too_large((self._bytes - self._fixed_bytes) / done)

    def _add(self, size_bytes: int) -> None:
        self._bytes += size_bytes
        self.overflowed = self.overflowed or self._bytes > self._max_bytes

    def _too_large(self, bytes_per_item: float) -> InvalidRequestError:
        fit = max(0, int((self._max_bytes - self._fixed_bytes) / bytes_per_item))
        return InvalidRequestError(
            self.form.rows,
            f"the reply to {self._items} of them would be larger than the {self._max_bytes} bytes that are allowed; "
            f"send fewer: about {fit} at a time fit" + ("" if fit else ", for so many metrics in one request"),
        )

    def _least_bytes(self, index: int, request: "MetricRequest | Failure") -> int:
        if not isinstance(request, Failure):
            return self.form.least_result_bytes
        result = self.form.blank_result()
        self.form.fill(result, index, ScoredResult(MetricResult.failed(request)), diagnostics=False)
        return _FRAME_BYTES + result.ByteSize()
