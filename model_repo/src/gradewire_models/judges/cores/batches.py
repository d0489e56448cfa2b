"""Answer batches of questions with one core, and keep prefixes and begun answers between the batches."""

import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from gradewire_models.judges.cores.rows import Core, CoreError, Row, RowResult, Run
from gradewire_models.judges.cores.wire import Question

Ids: TypeAlias = tuple[int, ...]
Begun: TypeAlias = tuple[Ids, Ids, Ids]

_NEW: Final = -1


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """Limits for runs and kept states. The defaults are for a judge on a CPU, with 8 questions in a batch.

    Attributes:
        max_run_tokens: Maximum number of tokens in one run, unless a single row is longer.
        max_prefixes: Maximum number of kept prefixes.
        max_prefix_tokens: Maximum number of tokens in all kept prefixes. The last one is always kept.
        max_begun_tokens: Maximum number of tokens in all begun answers that wait for their next token.
        max_begun_idle_s: Time in seconds after which a begun answer counts as abandoned.
        ends: IDs of the tokens that end an answer.
    """

    max_run_tokens: int = 192
    max_prefixes: int = 8
    max_prefix_tokens: int = 8192
    max_begun_tokens: int = 8 * 4096
    max_begun_idle_s: float = 60.0
    ends: frozenset[int] = frozenset()


@dataclass(slots=True)
class _Task:
    """A question with the rows that still have to be computed."""

    place: int
    question: Question
    rows: deque[Ids]
    state: int


class _Waiting(NamedTuple):
    """The state of a begun answer, and the time at which it began to wait for its next token."""

    state: int
    since_s: float


class BatchedCore:
    """A core that answers questions instead of runs. For one thread only.

    Other questions do not change an answer. A choice always has the same rows: the prefix and the item. A text has a
    row for each written token, like the embedded judge's. If its state was lost, all written tokens are one row, which
    may change the last digits of the logits.

    Args:
        clock: Function that returns a monotonic time in seconds.
    """

    def __init__(self, core: Core, limits: BatchLimits, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._core = core
        self._limits = limits
        self._clock = clock
        self._prefixes: OrderedDict[Ids, int] = OrderedDict()
        self._begun: OrderedDict[Begun, _Waiting] = OrderedDict()
        self._begun_tokens = 0
        self._drop: list[int] = []
        self._last_state = 0

    def answer(self, questions: Sequence[Question]) -> list[RowResult | CoreError]:
        """Answer questions. A question that fails does not affect the others."""
        self._forget_abandoned()
        groups: dict[Ids, list[int]] = {}
        for place, question in enumerate(questions):
            groups.setdefault(question.prefix, []).append(place)
        found: dict[int, RowResult | CoreError] = {}
        for prefix, places in groups.items():
            found |= self._answer_group(prefix, [(place, questions[place]) for place in places])
        return [found[place] for place in range(len(questions))]

    def _answer_group(self, prefix: Ids, members: Sequence[tuple[int, Question]]) -> dict[int, RowResult | CoreError]:
        tasks: list[_Task] = []
        try:
            kept = self._kept(prefix) if prefix else None
            tasks += (self._task(place, question) for place, question in members)
            return dict(self._compute(kept, tasks))
        except Exception as error:  # noqa: BLE001 - ONNX Runtime's errors have no common base class
            # The states of this group may be incomplete, so never use them again.
            self._drop += (task.state for task in tasks)
            if len(members) == 1:
                return {members[0][0]: error if isinstance(error, CoreError) else CoreError(str(error))}
        found: dict[int, RowResult | CoreError] = {}
        for member in members:
            found |= self._answer_group(prefix, [member])
        return found

    def _kept(self, prefix: Ids) -> int:
        """Return the state of a prefix, which is computed if it is not kept."""
        state = self._prefixes.get(prefix)
        if state is None:
            state = self._new_state()
            try:
                for ids in self._split(prefix):
                    self._run(None, [Row(state, ids, keep=True)])
            except BaseException:
                self._drop.append(state)
                raise
            self._prefixes[prefix] = state
        self._prefixes.move_to_end(prefix)
        tokens = sum(map(len, self._prefixes))
        while len(self._prefixes) > 1 and (
            len(self._prefixes) > self._limits.max_prefixes or tokens > self._limits.max_prefix_tokens
        ):
            oldest, dropped = self._prefixes.popitem(last=False)
            tokens -= len(oldest)
            self._drop.append(dropped)
        return state

    def _task(self, place: int, question: Question) -> _Task:
        """Return a question's rows. If all but the last written token are kept, only the last token is left."""
        prefix, item, written = question.prefix, question.item, question.written
        state = self._take_begun((prefix, item, written[:-1])) if written else _NEW
        if state != _NEW:
            return _Task(place, question, deque([written[-1:]]), state)
        return _Task(place, question, deque([*self._split(item), *self._split(written)]), self._new_state())

    def _compute(self, prefix: int | None, tasks: Sequence[_Task]) -> Iterable[tuple[int, RowResult]]:
        waiting = deque(tasks)
        while waiting:
            taken: list[_Task] = []
            tokens = 0
            while waiting and self._fits(len(taken), tokens + len(waiting[0].rows[0])):
                taken.append(waiting.popleft())
                tokens += len(taken[-1].rows[0])
            rows = [_next_row(task) for task in taken]
            for task, row, result in zip(taken, rows, self._run(prefix, rows), strict=True):
                task.rows.popleft()
                if task.rows:
                    waiting.append(task)
                    continue
                if not (row.keep and result.next_token not in self._limits.ends and self._keep_begun(task)):
                    self._drop.append(task.state)
                yield task.place, result

    def _fits(self, rows: int, tokens: int) -> bool:
        return not rows or (rows < self._core.limits.max_rows and tokens <= self._limits.max_run_tokens)

    def _keep_begun(self, task: _Task) -> bool:
        """Keep an answer's state for its next token. Return False if there is no room.

        The answers that are already kept stay, because writers take turns: if each new answer replaced the oldest one,
        no writer would find its state.
        """
        key = (task.question.prefix, task.question.item, task.question.written)
        same = self._take_begun(key)
        if same != _NEW:
            self._drop.append(same)
        tokens = _begun_tokens(key)
        if self._begun and self._begun_tokens + tokens > self._limits.max_begun_tokens:
            return False
        self._begun[key] = _Waiting(task.state, self._clock())
        self._begun_tokens += tokens
        return True

    def _take_begun(self, key: Begun) -> int:
        waiting = self._begun.pop(key, None)
        if waiting is None:
            return _NEW
        self._begun_tokens -= _begun_tokens(key)
        return waiting.state

    def _forget_abandoned(self) -> None:
        """Drop answers that ended without an end token, or whose caller left."""
        oldest_s = self._clock() - self._limits.max_begun_idle_s
        while self._begun:
            key, waiting = next(iter(self._begun.items()))
            if waiting.since_s > oldest_s:
                return
            self._drop.append(self._take_begun(key))

    def _run(self, prefix: int | None, rows: Sequence[Row]) -> list[RowResult]:
        dropped, self._drop = tuple(self._drop), []
        return self._core.run(Run(prefix, tuple(rows), dropped))

    def _split(self, ids: Ids) -> list[Ids]:
        longest = self._core.limits.max_row_tokens
        return [ids[start : start + longest] for start in range(0, len(ids), longest)]

    def _new_state(self) -> int:
        self._last_state += 1
        return self._last_state


def _begun_tokens(begun: Begun) -> int:
    _, item, written = begun
    return len(item) + len(written)


def _next_row(task: _Task) -> Row:
    question, ids = task.question, task.rows[0]
    if len(task.rows) > 1:
        return Row(task.state, ids, keep=True)
    # Without labels, the next question may continue this answer.
    writes = not question.labels
    return Row(task.state, ids, question.labels, next_token=writes, keep=writes)
