"""A stream of the server while it is open: what becomes of its batch, and when it takes the next."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import aclosing
from typing import Final

from gradewire._calls.client_calls import ClientCalls
from gradewire.errors import DeadlineExceeded, GradewireError, ServerFault, TransportError
from gradewire.metric_types.choice import MetricChoice
from gradewire.results import MetricScore, Status
from gradewire.rewards._gathering.batch_stream import BatchStream
from gradewire.rewards._gathering.group import Group, Piece

_OPEN_S: Final = 1.0
"""Time in which it takes batches. Opening one costs as much as scoring some dozen samples; one that stayed open would
hold up a server that wants to stop, and would not find a server that was added."""
_SHARE_OF_DEADLINE: Final = 0.95
_LEAST_DEADLINE_S: Final = 0.01


class OpenStream:
    """Takes one batch after the other, on the event loop that it is made on.

    Args:
        calls: Carries it.
        choice: The one metric.
        changed: Called when it is free for the next batch, and when it has ended.
    """

    def __init__(self, calls: ClientCalls, choice: MetricChoice, changed: "Callable[[OpenStream], None]") -> None:
        self._changed = changed
        self._places: dict[int, tuple[Group, int]] = {}
        self._first = 0
        self._begun = calls.rows(lambda transport, limits: self._begin(BatchStream(transport, choice, limits)))
        self._task = asyncio.create_task(self._run())
        asyncio.get_running_loop().call_later(_OPEN_S, self._stream.end)

    @property
    def is_free(self) -> bool:
        """Whether it takes a batch now."""
        return not self._places and self._stream.takes_items

    @property
    def is_busy(self) -> bool:
        """Whether items of its batch are in work."""
        return bool(self._places)

    @property
    def has_ended(self) -> bool:
        """Whether it takes no more, and all is answered."""
        return self._task.done()

    def take(self, batch: Sequence[Piece]) -> None:
        """Sends a batch and passes each score to its group; call it only while the stream is free."""
        waiting = len(batch)

        def one_less(_done: "asyncio.Future[None]") -> None:
            nonlocal waiting
            waiting -= 1
            # Nobody waits any more: the server need not go on. The next batch may be under way when this is called.
            if waiting == 0 and self._places and self._first == first:
                self._task.cancel()

        for group, _ in batch:
            group.done.add_done_callback(one_less)
        places = [(group, position) for group, positions in batch for position in positions]
        deadline_s = max(group.until for group, _ in batch) - asyncio.get_running_loop().time()
        # Less than its callers wait, so that they are told what kept it: no server, no time.
        stall_s = max(_SHARE_OF_DEADLINE * deadline_s, _LEAST_DEADLINE_S)
        self._first = first = self._stream.hand([group.items[position] for group, position in places], stall_s)
        self._places = dict(enumerate(places, first))

    def cancel(self) -> None:
        """Ends it at once."""
        self._task.cancel()

    def _begin(self, stream: BatchStream) -> BatchStream:
        self._stream = stream
        return stream

    async def _run(self) -> None:
        try:
            async with aclosing(self._begun) as results:
                async for some in results:
                    for index, score in some:
                        group, position = self._places.pop(index)
                        group.set(position, score)
                    if not self._places:
                        self._changed(self)
        except TransportError as error:
            _fail(self._places.values(), error)
        except GradewireError as error:
            for group, _ in self._places.values():
                group.fail(error)
        finally:
            self._stream.end()
            self._places = {}
            asyncio.get_running_loop().call_soon(self._changed, self)


def _fail(places: Iterable[tuple[Group, int]], error: TransportError) -> None:
    for group, position in places:
        if not error.may_pass and not isinstance(error, ServerFault):
            group.fail(error)  # the address is wrong, which no later call finds better
        else:
            group.set(position, MetricScore(None, _status_of(error), str(error)))


def _status_of(error: TransportError) -> Status:
    if isinstance(error, DeadlineExceeded):
        return Status.TIMEOUT
    return Status.INTERNAL if isinstance(error, ServerFault) else Status.UNAVAILABLE
