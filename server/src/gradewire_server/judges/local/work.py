"""One need while the embedded judge computes it."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from gradewire_proto.conventions.spans import Span, current_span
from gradewire_server.domain.caller import asking
from gradewire_server.domain.result import Failure
from gradewire_server.judges.local.prefixes import Prefix
from gradewire_server.judges.worker.messages import Row, RowResult

NEW = -1
"""State number of work that has none yet."""


@dataclass(slots=True, eq=False)
class Work:
    """A prompt, what is asked of it, and how far it has come.

    Attributes:
        fixed: Token ids of the fixed turns.
        item: Token ids of the item and the opening.
        done: Gets the result of the last row, or a failure; cancelled once nobody waits any more.
        arrived_s: When it was queued, `time.monotonic()` seconds.
        labels: For a choice: token ids to compare.
        max_tokens: For a text: how many tokens may be written; 0 for a choice.
        ended: For a text: whether these tokens are the whole answer.
        prefix: State of the fixed turns, from its first run on; None where there are none.
        state: Its own number in the worker.
        computed: How many of the item's tokens are computed.
        written: Tokens of the answer so far.
        begun_s: When its first run left.
        inference_s: Sum of its runs.
        span: Of who asked, where that is traced.
        caller: Who asked: `domain.caller.asking`.
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
    caller: str = field(default_factory=asking)

    @property
    def wanted(self) -> bool:
        """Whether anybody still waits for it."""
        return not self.done.done()

    @property
    def tokens(self) -> int:
        """How many tokens its state may grow to."""
        return len(self.item) + self.max_tokens

    @property
    def queue_s(self) -> float:
        """How long it waited for its first run."""
        return max(0.0, self.begun_s - self.arrived_s) if self.begun_s else 0.0

    def grows(self, max_row_tokens: int) -> bool:
        """Whether it takes more than one run."""
        return self.max_tokens > 1 or len(self.item) > max_row_tokens

    def next_row(self, max_row_tokens: int) -> Row:
        """What to compute next. Where an item is cut into rows depends on the item alone."""
        if self.computed == len(self.item):
            return Row(self.state, (self.written[-1],), next_token=True, keep=True)
        ids = self.item[self.computed : self.computed + max_row_tokens]
        if self.computed + len(ids) < len(self.item):
            return Row(self.state, ids, keep=True)
        return Row(self.state, ids, self.labels, next_token=self.max_tokens > 0, keep=self.grows(max_row_tokens))

    def take(self, row: Row, result: RowResult) -> None:
        """Takes the result of a row; completes `done` when that was the last one."""
        if self.computed < len(self.item):
            self.computed += len(row.ids)
        if row.next_token:
            self.written.append(result.next_token)
        whole = self.ended(self.written) or len(self.written) >= self.max_tokens
        if (row.labels or (row.next_token and whole)) and not self.done.done():
            self.done.set_result(result)

    def fail(self, failure: Failure) -> None:
        """Completes it with a failure."""
        if not self.done.done():
            self.done.set_result(failure)

    def start_over(self) -> None:
        """Begins again: its state is lost with the worker. The answer will be the same."""
        self.prefix, self.state, self.computed = None, NEW, 0
        self.written.clear()
