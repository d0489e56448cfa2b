"""The embedded judge's queue, which plans runs, keeps prefixes and serves callers in turn."""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from gradewire_models.judges.cores.rows import CoreLimits, Row, RowResult, Run
from gradewire_proto.tracing.spans import Span, current_span
from gradewire_server.domain.caller import current_caller
from gradewire_server.domain.items import Failure
from gradewire_server.settings.judge import EmbeddedJudgeConfig

NEW: Final = -1
"""The state ID of new work."""


@dataclass(slots=True, eq=False)
class Prefix:
    """Fixed turns that several items share.

    Attributes:
        users: Number of unfinished states that start with these turns.
    """

    ids: tuple[int, ...]
    state: int
    computed: int = 0
    users: int = 0

    @property
    def ready(self) -> bool:
        """True if all turns have been computed."""
        return self.computed == len(self.ids)


@dataclass(slots=True, eq=False)
class Work:
    """A prompt, the requested answer and its progress.

    Attributes:
        done: Future for the last row's result or a failure; cancelled when no caller waits any more.
        arrived_s: Time when the work was queued, in `time.monotonic()` seconds.
        max_tokens: Maximum number of tokens to write, or 0 for a choice.
        ended: Function that returns True if the written tokens are a whole answer.
        prefix: The fixed turns, or None before the first run. None also means that there are no fixed turns.
        computed: Number of computed tokens in `item`.
    """

    fixed: tuple[int, ...]
    item: tuple[int, ...]
    done: asyncio.Future[RowResult | Failure]
    arrived_s: float
    labels: tuple[int, ...] = ()
    max_tokens: int = 0
    ended: Callable[[Sequence[int]], bool] = bool
    prefix: Prefix | None = None
    state: int = NEW
    computed: int = 0
    written: list[int] = field(default_factory=list)
    begun_s: float = 0.0
    inference_s: float = 0.0
    span: Span | None = field(default_factory=current_span)
    caller: str = field(default_factory=current_caller)

    @property
    def wanted(self) -> bool:
        """True if a caller still waits for the work."""
        return not self.done.done()

    @property
    def tokens(self) -> int:
        """The maximum number of tokens in the work's state."""
        return len(self.item) + self.max_tokens

    @property
    def queue_s(self) -> float:
        """Seconds that the work waited for its first run."""
        return max(0.0, self.begun_s - self.arrived_s) if self.begun_s else 0.0

    def grows(self, max_row_tokens: int) -> bool:
        """Return True if the work needs more than one run."""
        return self.max_tokens > 1 or len(self.item) > max_row_tokens

    def next_row(self, max_row_tokens: int) -> Row:
        """Return the next row to compute. An item's rows do not depend on other items."""
        if self.computed == len(self.item):
            return Row(self.state, (self.written[-1],), next_token=True, keep=True)
        ids = self.item[self.computed : self.computed + max_row_tokens]
        if self.computed + len(ids) < len(self.item):
            return Row(self.state, ids, keep=True)
        return Row(self.state, ids, self.labels, next_token=self.max_tokens > 0, keep=self.grows(max_row_tokens))

    def take(self, row: Row, result: RowResult) -> None:
        """Add a row's result. The last result completes `done`."""
        if self.computed < len(self.item):
            self.computed += len(row.ids)
        if row.next_token:
            self.written.append(result.next_token)
        whole = self.ended(self.written) or len(self.written) >= self.max_tokens
        if (row.labels or (row.next_token and whole)) and not self.done.done():
            self.done.set_result(result)

    def fail(self, failure: Failure) -> None:
        """Complete the work with a failure."""
        if not self.done.done():
            self.done.set_result(failure)

    def start_over(self) -> None:
        """Reset the work after the worker has lost the work's state."""
        self.prefix, self.state, self.computed = None, NEW, 0
        self.written.clear()


class CallerTurns:
    """A queue that serves callers in turn, so that a caller with a thousand items delays other callers by one item."""

    def __init__(self) -> None:
        self._callers: OrderedDict[str, deque[Work]] = OrderedDict()

    def __len__(self) -> int:
        return sum(map(len, self._callers.values()))

    def __iter__(self) -> Iterator[Work]:
        """Yield all work, with each caller's work in order."""
        return (work for waiting in self._callers.values() for work in waiting)

    def append(self, work: Work) -> None:
        """Queue work after all earlier work from its caller."""
        self._callers.setdefault(work.caller, deque()).append(work)

    def popleft(self) -> Work:
        """Take the next work, and move the work's caller behind all other callers."""
        caller, waiting = next(iter(self._callers.items()))
        work = waiting.popleft()
        self._callers.move_to_end(caller)
        if not waiting:
            del self._callers[caller]
        return work

    def put_back(self, works: list[Work]) -> None:
        """Put work back, in this order, in front of all queued work."""
        for work in reversed(works):
            self._callers.setdefault(work.caller, deque()).appendleft(work)
            self._callers.move_to_end(work.caller, last=False)

    def drop_cancelled(self) -> None:
        """Remove work that no caller waits for any more."""
        for caller, waiting in list(self._callers.items()):
            if any(not work.wanted for work in waiting):
                wanted = deque(work for work in waiting if work.wanted)
                if wanted:
                    self._callers[caller] = wanted
                else:
                    del self._callers[caller]


@dataclass(slots=True, eq=False)
class _Group:
    waiting: CallerTurns = field(default_factory=CallerTurns)
    growing: list[Work] = field(default_factory=list)
    debt_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Planned:
    """A run and the work that it computes.

    Attributes:
        works: The work for each row. Runs that compute fixed turns have no work.
        prefix: The fixed turns that the run computes, or that precede the run's rows.
    """

    run: Run
    works: tuple[Work, ...]
    prefix: Prefix | None
    group: tuple[int, ...]
    begins: int = 0


class EmbeddedQueue:
    """A queue for waiting work, and for work that needs several runs.

    Args:
        max_growing_tokens: Maximum number of tokens in all work that needs several runs. Larger work may run alone.
    """

    def __init__(self, config: EmbeddedJudgeConfig, core: CoreLimits, max_growing_tokens: int) -> None:
        self._core = core
        self._max_run_tokens = config.max_batch_tokens
        self._max_growing = min(config.max_sequences, core.max_growing)
        self._max_growing_tokens = max_growing_tokens
        self._prefixes: OrderedDict[tuple[int, ...], Prefix] = OrderedDict()
        self._max_prefixes = min(config.max_prefix_states, core.max_prefixes)
        self._max_prefix_tokens = config.max_prefix_tokens
        self._groups: OrderedDict[tuple[int, ...], _Group] = OrderedDict()
        self._states = 0
        self._drop: list[int] = []

    def push(self, work: Work) -> None:
        """Queue work."""
        self._groups.setdefault(work.fixed, _Group()).waiting.append(work)

    def plan(self) -> Planned | None:
        """Return the next run, or None if there is no work."""
        self._remove_unwanted()
        ids = self._turn()
        if ids is None:
            return None
        # Items without fixed turns also occupy a prefix in the core.
        place = self._prefixes.setdefault(ids, Prefix(ids, self._next_state()))
        self._prefixes.move_to_end(ids)
        prefix = place if ids else None
        self._make_room()
        if prefix is not None and not prefix.ready:
            row = Row(prefix.state, ids[prefix.computed : prefix.computed + self._core.max_row_tokens], keep=True)
            return Planned(Run(None, (row,), self._dropped()), (), prefix, ids)
        group = self._groups[ids]
        works, begins = self._take(group, prefix)
        rows = tuple(work.next_row(self._core.max_row_tokens) for work in works)
        run = Run(None if prefix is None else prefix.state, rows, self._dropped())
        group.debt_tokens -= sum(len(row.ids) for row in rows)
        if group.debt_tokens <= 0:
            self._groups.move_to_end(ids)
        return Planned(run, works, prefix, ids, begins)

    def computed(self, planned: Planned) -> None:
        """Record a successful run. Call this after the run's work has received results."""
        if not planned.works and planned.prefix is not None:
            tokens = len(planned.run.rows[0].ids)
            planned.prefix.computed += tokens
            if planned.group in self._groups:
                self._groups[planned.group].debt_tokens += tokens

    def lost(self, planned: Planned, failure: Failure) -> None:
        """Fail the work in a run that ended the worker, because this work may be the cause.

        If the run computed fixed turns, fail the work that waits for these turns.
        """
        group = self._groups.get(planned.group)
        for work in planned.works or (tuple(group.waiting) if group else ()):
            work.fail(failure)

    def start_over(self) -> None:
        """Restart all work, because a new worker has no states."""
        self._prefixes.clear()
        self._drop.clear()
        for each in self._groups.values():
            each.debt_tokens = 0
            for work in each.growing:
                work.start_over()
            each.waiting.put_back(each.growing)
            each.growing.clear()

    def fail_all(self, failure: Failure) -> None:
        """Fail all work."""
        for group in self._groups.values():
            for work in (*group.growing, *group.waiting):
                work.fail(failure)

    def _remove_unwanted(self) -> None:
        for ids in list(self._groups):
            group = self._groups[ids]
            for work in [work for work in group.growing if not work.wanted]:
                group.growing.remove(work)
                self._drop.append(work.state)
                if work.prefix is not None:
                    work.prefix.users -= 1
            group.waiting.drop_cancelled()
            if not group.waiting and not group.growing:
                del self._groups[ids]

    def _make_room(self) -> None:
        """Drop the least recently used prefixes until the limits hold. Keep the latest prefix and prefixes in use."""
        tokens = sum(len(ids) for ids in self._prefixes)
        for ids in list(self._prefixes)[:-1]:
            if len(self._prefixes) <= self._max_prefixes and tokens <= self._max_prefix_tokens:
                break
            if not self._prefixes[ids].users:
                self._drop.append(self._prefixes.pop(ids).state)
                tokens -= len(ids)

    def _turn(self) -> tuple[int, ...] | None:
        if self._max_growing == 1:
            for ids, group in self._groups.items():
                if group.growing:
                    return ids
        for ids, group in self._groups.items():
            # Skip groups whose work cannot start yet.
            if group.growing or any(self._may_begin(work) for work in group.waiting):
                return ids
        return None

    def _take(self, group: _Group, prefix: Prefix | None) -> tuple[tuple[Work, ...], int]:
        taken: list[Work] = []
        tokens = 0
        for work in group.growing:
            row_tokens = len(work.next_row(self._core.max_row_tokens).ids)
            if self._fits(taken, tokens, row_tokens):
                taken.append(work)
                tokens += row_tokens
        if self._max_growing == 1 and taken:
            return tuple(taken), 0
        begun = 0
        left: list[Work] = []
        while group.waiting:
            work = group.waiting.popleft()
            row_tokens = min(len(work.item), self._core.max_row_tokens)
            if not self._fits(taken, tokens, row_tokens):
                left.append(work)
                break
            if not self._may_begin(work):
                left.append(work)
                continue
            work.state, work.prefix = self._next_state(), prefix
            if work.grows(self._core.max_row_tokens):
                group.growing.append(work)
                if prefix is not None:
                    prefix.users += 1
            taken.append(work)
            tokens += row_tokens
            begun += 1
        group.waiting.put_back(left)
        return tuple(taken), begun

    def _fits(self, taken: list[Work], tokens: int, row_tokens: int) -> bool:
        return not taken or (len(taken) < self._core.max_rows and tokens + row_tokens <= self._max_run_tokens)

    def _may_begin(self, work: Work) -> bool:
        if not work.grows(self._core.max_row_tokens):
            return True
        growing = [each for group in self._groups.values() for each in group.growing]
        if not growing:
            return True
        tokens = sum(each.tokens for each in growing) + work.tokens
        return len(growing) < self._max_growing and tokens <= self._max_growing_tokens

    def _next_state(self) -> int:
        self._states += 1
        return self._states

    def _dropped(self) -> tuple[int, ...]:
        dropped = tuple(each for each in self._drop if each != NEW)
        self._drop.clear()
        return dropped
