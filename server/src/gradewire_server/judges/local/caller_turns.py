"""Work that waits with the same fixed turns: callers take turns, and of one caller the oldest goes first."""

from collections import OrderedDict, deque
from collections.abc import Iterator

from gradewire_server.judges.local.work import Work


class CallerTurns:
    """A queue of work. A caller with a thousand questions delays one with a single question by one of them."""

    def __init__(self) -> None:
        self._callers: OrderedDict[str, deque[Work]] = OrderedDict()

    def __len__(self) -> int:
        return sum(map(len, self._callers.values()))

    def __iter__(self) -> Iterator[Work]:
        """All of it, in the order in which it came for each caller."""
        return (work for waiting in self._callers.values() for work in waiting)

    def append(self, work: Work) -> None:
        """Queues work behind that of its caller."""
        self._callers.setdefault(work.caller, deque()).append(work)

    def popleft(self) -> Work:
        """Takes the next; its caller's turn comes again after all others."""
        caller, waiting = next(iter(self._callers.items()))
        work = waiting.popleft()
        self._callers.move_to_end(caller)
        if not waiting:
            del self._callers[caller]
        return work

    def put_back(self, works: list[Work]) -> None:
        """Puts work before all other, to be taken in this order again as far as it is one caller's."""
        for work in reversed(works):
            self._callers.setdefault(work.caller, deque()).appendleft(work)
            self._callers.move_to_end(work.caller, last=False)

    def drop_unwanted(self) -> None:
        """Removes what nobody waits for any more."""
        for caller, waiting in list(self._callers.items()):
            if any(not work.wanted for work in waiting):
                wanted = deque(work for work in waiting if work.wanted)
                if wanted:
                    self._callers[caller] = wanted
                else:
                    del self._callers[caller]
