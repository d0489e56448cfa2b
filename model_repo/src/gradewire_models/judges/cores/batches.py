"""Answer batches of questions with one core, and keep prefixes and begun answers between the batches."""

from collections import OrderedDict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from gradewire_models.judges.cores.rows import Core, CoreError, Row, RowResult, Run
from gradewire_models.judges.cores.wire import Question

Ids: TypeAlias = tuple[int, ...]
Begun: TypeAlias = tuple[Ids, Ids, Ids]

_NEW: Final = -1


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """Limits for runs and kept states. The defaults equal those of a server's embedded judge.

    Attributes:
        max_run_tokens: Maximum number of tokens in one run, unless a single row is longer.
        max_prefixes: Maximum number of kept prefixes.
        max_prefix_tokens: Maximum number of tokens in all kept prefixes. The last one is always kept.
        max_begun_tokens: Maximum number of tokens in all begun answers that wait for their next token.
    """

    max_run_tokens: int = 192
    max_prefixes: int = 8
    max_prefix_tokens: int = 8192
    max_begun_tokens: int = 4096


@dataclass(slots=True)
class _Task:
    """A question with the rows that still have to be computed."""

    place: int
    question: Question
    rows: deque[Ids]
    state: int


class BatchedCore:
    """A core that answers questions instead of runs. For one thread only.

    The rows of a question are always the same: the prefix, the item and each written token. So an answer does not
    depend on other questions or on kept states, and equals the embedded judge's answer.
    """

    def __init__(self, core: Core, limits: BatchLimits) -> None:
        self._core = core
        self._limits = limits
        self._prefixes: OrderedDict[Ids, int] = OrderedDict()
        self._begun: OrderedDict[Begun, int] = OrderedDict()
        self._drop: list[int] = []
        self._last_state = 0

    def answer(self, questions: Sequence[Question]) -> list[RowResult | CoreError]:
        """Answer questions. A question that fails does not affect the others."""
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
        state = self._begun.pop((prefix, item, written[:-1]), _NEW) if written else _NEW
        if state != _NEW:
            return _Task(place, question, deque([written[-1:]]), state)
        return _Task(place, question, deque([*self._split(item), *((token,) for token in written)]), self._new_state())

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
                if row.keep:
                    self._keep_begun(task)
                else:
                    self._drop.append(task.state)
                yield task.place, result

    def _fits(self, rows: int, tokens: int) -> bool:
        return not rows or (rows < self._core.limits.max_rows and tokens <= self._limits.max_run_tokens)

    def _keep_begun(self, task: _Task) -> None:
        key = (task.question.prefix, task.question.item, task.question.written)
        self._drop += [state for state in (self._begun.pop(key, _NEW),) if state != _NEW]
        self._begun[key] = task.state
        tokens = sum(len(item) + len(written) for _, item, written in self._begun)
        while tokens > self._limits.max_begun_tokens and len(self._begun) > 1:
            (_, item, written), state = self._begun.popitem(last=False)
            tokens -= len(item) + len(written)
            self._drop.append(state)

    def _run(self, prefix: int | None, rows: Sequence[Row]) -> list[RowResult]:
        dropped, self._drop = tuple(self._drop), []
        return self._core.run(Run(prefix, tuple(rows), dropped))

    def _split(self, ids: Ids) -> list[Ids]:
        longest = self._core.limits.max_row_tokens
        return [ids[start : start + longest] for start in range(0, len(ids), longest)]

    def _new_state(self) -> int:
        self._last_state += 1
        return self._last_state


def _next_row(task: _Task) -> Row:
    question, ids = task.question, task.rows[0]
    if len(task.rows) > 1:
        return Row(task.state, ids, keep=True)
    # Without labels, the next question may continue this answer.
    writes = not question.labels
    return Row(task.state, ids, question.labels, next_token=writes, keep=writes)
