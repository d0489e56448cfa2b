"""Results of a stream on their way out: they are gathered into replies while the reader takes the ones before."""

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import Any, Final

from gradewire_server.domain.result import ScoredResult
from gradewire_server.requests.forms.form import CallForm

_MAX_REPLY_RESULTS: Final = 1024
_MAX_REPLY_CHARS: Final = 1 << 20


@dataclass(slots=True)
class OpenItem:
    """An item, with how many of its results are not out yet, and how many places of the window it takes."""

    index: int
    id: str
    missing: int
    places: int = 1


class Outbox:
    """Replies that wait for their reader; `get` hands them out in order."""

    def __init__(self, form: CallForm) -> None:
        self._form = form
        self._replies: deque[_Reply] = deque()
        self._ready = asyncio.Event()
        self._error: BaseException | None = None
        self._finished = False

    def put(self, item: OpenItem, metric_index: int, scored: ScoredResult, *, diagnostics: bool) -> None:
        """Adds a result; cost and time only with `diagnostics`."""
        if not self._replies or self._replies[-1].full:
            self._replies.append(_Reply(self._form))
        self._replies[-1].put(item, metric_index, scored, diagnostics=diagnostics)
        self._ready.set()

    def finish(self, reading: asyncio.Task[None]) -> None:
        """Marks the end of the results: all is read and scored, or `reading` failed."""
        if not reading.cancelled() and (error := reading.exception()) is not None:
            self.fail(error)
        self._finished = True
        self._ready.set()

    def fail(self, error: BaseException) -> None:
        """Has the next `get` raise `error`, unless an earlier one waits."""
        self._error = self._error or error
        self._ready.set()

    async def get(self) -> tuple[Any, int] | None:
        """The next message and how many places of the window it frees; None at the end; raises what `fail` took."""
        await self._ready.wait()
        if self._error is not None:
            raise self._error
        if not self._replies:
            return None
        reply = self._replies.popleft()
        if not self._replies and not self._finished:
            self._ready.clear()
        return reply.message, reply.completed


class _Reply:
    """A reply being filled."""

    def __init__(self, form: CallForm) -> None:
        self._form = form
        self.message = form.streamed()
        self.completed = 0
        self._results = 0
        self._chars = 0
        self._by_index: dict[int, Any] = {}

    @property
    def full(self) -> bool:
        return self._results >= _MAX_REPLY_RESULTS or self._chars >= _MAX_REPLY_CHARS

    def put(self, item: OpenItem, metric_index: int, scored: ScoredResult, *, diagnostics: bool) -> None:
        target = self._by_index.get(item.index)
        if target is None:
            target = self._by_index[item.index] = self._form.add_row(self.message, item.index, item.id)
            self._chars += len(item.id)
        self._form.fill(self._form.add_result(target), metric_index, scored, diagnostics=diagnostics)
        self._results += 1
        self._chars += len(scored.result.message) + self._form.text_characters(scored)
        item.missing -= 1
        if item.missing == 0:
            self._form.complete(target)
            self.completed += item.places
