"""Plans what the embedded judge computes next: scheduling alone, without a clock or a task.

Work with the same fixed turns shares their state, so a run is made of one group. Groups take turns. A group whose fixed
turns had to be computed keeps its turn until its items have taken as many tokens: with many prompts, all time would go
into computing fixed turns again and again. Within a group what has begun goes before what waits, callers take turns,
and of one caller the oldest goes first.
"""

from collections import OrderedDict
from dataclasses import dataclass, field

from gradewire_server.domain.result import Failure
from gradewire_server.judges.local.caller_turns import CallerTurns
from gradewire_server.judges.local.prefixes import Prefix, PrefixStore
from gradewire_server.judges.local.work import NEW, Work
from gradewire_server.judges.worker.messages import CoreLimits, Row, Run


@dataclass(frozen=True, slots=True)
class QueueLimits:
    """How much is computed and kept at a time.

    Attributes:
        max_run_tokens: Of one run; a single longer row goes alone.
        max_growing: States that grow over several runs.
        max_growing_tokens: Of all of them together; a single longer one goes alone.
        max_prefixes: Fixed prompts whose state is kept.
        max_prefix_tokens: Of all of them together; a single longer one stays as long as it is used.
    """

    max_run_tokens: int
    max_growing: int
    max_growing_tokens: int
    max_prefixes: int
    max_prefix_tokens: int


@dataclass(slots=True, eq=False)
class _Group:
    waiting: CallerTurns = field(default_factory=CallerTurns)
    growing: list[Work] = field(default_factory=list)
    debt_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Planned:
    """A run, and whose rows it has.

    Attributes:
        run: For the worker.
        works: One per row; empty where the run computes fixed turns.
        prefix: The fixed turns that it computes, or that stand before its rows.
        group: Token ids of the fixed turns.
        begins: How many works have their first row in it.
    """

    run: Run
    works: tuple[Work, ...]
    prefix: Prefix | None
    group: tuple[int, ...]
    begins: int = 0


class EmbeddedQueue:
    """Work that waits, and work that grows over several runs.

    Args:
        limits: The operator's.
        core: The core's.
    """

    def __init__(self, limits: QueueLimits, core: CoreLimits) -> None:
        self._limits = limits
        self._core = core
        self._prefixes = PrefixStore(min(limits.max_prefixes, core.max_prefixes), limits.max_prefix_tokens)
        self._max_growing = min(limits.max_growing, core.max_growing)
        self._groups: OrderedDict[tuple[int, ...], _Group] = OrderedDict()
        self._states = 0
        self._drop: list[int] = []

    @property
    def waiting(self) -> int:
        """How many works have not begun."""
        return sum(len(group.waiting) for group in self._groups.values())

    def push(self, work: Work) -> None:
        """Queues work."""
        self._groups.setdefault(work.fixed, _Group()).waiting.append(work)

    def plan(self) -> Planned | None:
        """The next run; None when there is nothing to compute that anybody waits for."""
        self._sweep()
        ids = self._turn()
        if ids is None:
            return None
        # Where there are no fixed turns, what comes behind them still takes a place in the core.
        place = self._prefixes.find(ids, state=self._next_state())
        prefix = place if ids else None
        self._drop += self._prefixes.make_room()
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
        """Notes that a run went well and its works took their results."""
        if not planned.works and planned.prefix is not None:
            tokens = len(planned.run.rows[0].ids)
            planned.prefix.computed += tokens
            if planned.group in self._groups:
                self._groups[planned.group].debt_tokens += tokens

    def lost(self, planned: Planned, failure: Failure) -> None:
        """Fails the works of a run that ended the worker: one of them may be the cause.

        Where the run computed fixed turns, the works that wait for these fail.
        """
        group = self._groups.get(planned.group)
        for work in planned.works or (tuple(group.waiting) if group else ()):
            work.fail(failure)

    def start_over(self) -> None:
        """Begins all work again: there is another worker, which knows no states."""
        self._prefixes.forget_all()
        self._drop.clear()
        for each in self._groups.values():
            each.debt_tokens = 0
            for work in each.growing:
                work.start_over()
            each.waiting.put_back(each.growing)
            each.growing.clear()

    def fail_all(self, failure: Failure) -> None:
        """Fails all work."""
        for group in self._groups.values():
            for work in (*group.growing, *group.waiting):
                work.fail(failure)

    def _sweep(self) -> None:
        """Removes what is done or not wanted any more."""
        for ids in list(self._groups):
            group = self._groups[ids]
            for work in [work for work in group.growing if not work.wanted]:
                group.growing.remove(work)
                self._drop.append(work.state)
                if work.prefix is not None:
                    work.prefix.users -= 1
            group.waiting.drop_unwanted()
            if not group.waiting and not group.growing:
                del self._groups[ids]

    def _turn(self) -> tuple[int, ...] | None:
        if self._max_growing == 1:
            for ids, group in self._groups.items():
                if group.growing:
                    return ids
        growing = sum(len(group.growing) for group in self._groups.values())
        for ids, group in self._groups.items():
            # A group that only has works which cannot begin yet lets the others pass.
            if group.growing or not growing or any(self._may_begin(work) for work in group.waiting):
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
        return not taken or (len(taken) < self._core.max_rows and tokens + row_tokens <= self._limits.max_run_tokens)

    def _may_begin(self, work: Work) -> bool:
        if not work.grows(self._core.max_row_tokens):
            return True
        growing = [each for group in self._groups.values() for each in group.growing]
        if not growing:
            return True
        tokens = sum(each.tokens for each in growing) + work.tokens
        return len(growing) < self._max_growing and tokens <= self._limits.max_growing_tokens

    def _next_state(self) -> int:
        self._states += 1
        return self._states

    def _dropped(self) -> tuple[int, ...]:
        dropped = tuple(each for each in self._drop if each != NEW)
        self._drop.clear()
        return dropped
