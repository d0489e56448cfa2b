"""The spool as the loop, the worker and the thread of callbacks share it, and the times of retries."""

import random
import threading
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, Final

from gradewire.errors import TransportError
from gradewire.integrations.training.spool import Spool, WaitingStep
from gradewire.integrations.training.step_file import DamagedStepError, StepHeader, TooLargeStepError
from gradewire.integrations.training.step_scores import StepScores, StepState

_FIRST_WAIT_S: Final = 0.5
_LONGEST_WAIT_S: Final = 30.0
# What the server refuses is refused again until somebody changes something there.
_REFUSED_WAIT_S: Final = 60.0
_JITTER: Final = 0.2


@dataclass(slots=True)
class _Failures:
    count: int = 0
    due_s: float = 0.0


@dataclass(slots=True)
class RetryTimes:
    """Clocks are monotonic seconds.

    A server that cannot be reached is tried by one step after the other, at growing intervals; a step that was refused
    waits a minute and lets others go first.
    """

    _steps: dict[int, _Failures] = field(default_factory=dict)
    _server_failures: int = 0
    _server_due_s: float = 0.0

    def failed(self, sequence: int, error: Exception, now_s: float) -> float:
        """Notes a failure; seconds until the step is due again."""
        failures = self._steps.setdefault(sequence, _Failures())
        failures.count += 1
        if isinstance(error, TransportError) and error.may_pass:
            self._server_failures += 1
            grown = min(_FIRST_WAIT_S * 2.0 ** min(self._server_failures - 1, 30), _LONGEST_WAIT_S)
            wait_s = (error.retry_after_s or grown) * random.uniform(1, 1 + _JITTER)  # noqa: S311 - spreads load
            self._server_due_s = now_s + wait_s
        else:
            wait_s = _REFUSED_WAIT_S
        failures.due_s = now_s + wait_s
        return wait_s

    def answered(self) -> None:
        """The server is there."""
        self._server_failures = 0
        self._server_due_s = 0.0

    def ended(self, sequence: int) -> None:
        """The step needs no more tries."""
        self._steps.pop(sequence, None)

    def order(self, sequence: int) -> tuple[int, int]:
        """Whose turn comes first: the fewest failures, then the oldest."""
        return self.failures(sequence), sequence

    def failures(self, sequence: int) -> int:
        """How often the step was tried in vain, by this process."""
        return self._steps[sequence].count if sequence in self._steps else 0

    def due_s(self, sequence: int) -> float:
        """When it may be tried."""
        return max(self._server_due_s, self._steps[sequence].due_s if sequence in self._steps else 0.0)


class StepQueue:
    """Takes steps, hands out those that are due, and keeps what became of them; safe for several threads.

    No call waits for the network. The lock is held for files, never while something is scored or called back.

    Args:
        spool: Owned from here on.
    """

    def __init__(self, spool: Spool) -> None:
        self._spool = spool
        self._changed = threading.Condition()
        self._times = RetryTimes()
        self._problems: dict[int, str] = {}
        # Steps whose scores are with sinks and callbacks.
        self._delivering: set[int] = set()
        self.closed = False

    def add(self, header: StepHeader, rows: Iterable[bytes]) -> tuple[StepState, list[StepScores]]:
        """Writes a step to disk; what became of it, and what was given up for it, or itself, as scores to tell of."""
        with self._changed:
            if problem := self._spool.refuses_new():
                return StepState.DROPPED, [self._spool.refuse(header, problem, time.time())]
            try:
                added = self._spool.add(header, rows)
            except TooLargeStepError as error:
                problem = f"{error}, and more may not wait (max_bytes)"
                return StepState.DROPPED, [self._spool.refuse(header, problem, time.time())]
            dropped = []
            for step, problem in self._spool.above_limits(self._delivering):
                scores = step.ended(StepState.DROPPED, problem, time.time())
                self._spool.drop(step, scores)
                self._settled(step.sequence)
                dropped.append(scores)
            self._changed.notify_all()
            is_kept = added.sequence in self._spool.waiting
            return StepState.NOT_SCORED if is_kept else StepState.DROPPED, dropped

    def refuse(self, header: StepHeader, problem: str) -> StepScores:
        """Notes a step that could not be written.

        Raises:
            OSError: That cannot be written either.
        """
        with self._changed:
            return self._spool.refuse(header, problem, time.time())

    def damaged(self) -> list[StepScores]:
        """Records damaged files found when the spool was opened as CORRUPT steps; returns each of them once."""
        with self._changed:
            found, self._spool.damaged = self._spool.damaged, []
            noted = []
            for sequence, step, problem in found:
                scores = StepScores(step, "", 0, StepState.CORRUPT, problem=problem, ended_unix_s=time.time())
                self._spool.log.add(sequence, scores)
                noted.append(scores)
            return noted

    def take(self) -> WaitingStep | None:
        """The next step that is due, waiting for one; None when closed."""
        with self._changed:
            while not self.closed:
                now_s = time.monotonic()
                step, due_s = self._next()
                if step is not None and due_s <= now_s:
                    return step
                self._changed.wait(None if step is None else due_s - now_s)
            return None

    def read(self, step: WaitingStep) -> list[Any] | StepScores | None:
        """Its rows; what became of it where its file is damaged; None where it has been dropped meanwhile."""
        try:
            return self._spool.read(step)
        except FileNotFoundError:
            with self._changed:
                if step.sequence in self._spool.waiting:
                    return self._aside(step, "its file is gone", moved=False)
                return None
        except DamagedStepError as error:
            with self._changed:
                return self._aside(step, f"its file was damaged ({error})", moved=True)

    def failed(self, step: WaitingStep, error: Exception, problem: str = "") -> float:
        """Notes why a step was not scored; seconds until it is tried again."""
        with self._changed:
            if self.closed or step.sequence not in self._spool.waiting:
                return 0.0
            self._problems[step.sequence] = problem or f"{type(error).__name__}: {error}"
            return self._times.failed(step.sequence, error, time.monotonic())

    def scored(self, step: WaitingStep) -> bool:
        """Whether the scores of a step are wanted still; from here on it waits for `delivered`."""
        with self._changed:
            self._times.answered()
            if self.closed or step.sequence not in self._spool.waiting:
                return False
            self._delivering.add(step.sequence)
            return True

    def delivered(self, step: WaitingStep, scores: StepScores) -> None:
        """Keeps the scores, and removes the step from the disk.

        Raises:
            OSError: They cannot be kept; the step is scored again later.
        """
        with self._changed:
            self._delivering.discard(step.sequence)
            try:
                if not self.closed:
                    self._spool.end(step, scores)
                    self._settled(step.sequence)
            except OSError as error:
                self._problems[step.sequence] = str(error)
                self._times.failed(step.sequence, error, time.monotonic())
                raise
            finally:
                self._changed.notify_all()

    def wait_empty(self, timeout_s: float | None) -> bool:
        """Whether nothing waits and nothing is being delivered, at the latest after `timeout_s`."""
        with self._changed:
            return self._changed.wait_for(lambda: self.closed or not self._spool.waiting, timeout_s) and (
                not self._spool.waiting
            )

    def results(self) -> list[StepScores]:
        """Of each name and step the latest submission, by step."""
        with self._changed:
            submitted = self._spool.log.kept() | {
                sequence: step.ended(StepState.NOT_SCORED, self._problems.get(sequence, ""))
                for sequence, step in self._spool.waiting.items()
            }
        latest = {(scores.name, scores.step): scores for _, scores in sorted(submitted.items(), key=itemgetter(0))}
        return sorted(latest.values(), key=lambda scores: (scores.step, scores.name))

    def counts(self) -> Counter[StepState]:
        """Number of steps by state, since the directory was new."""
        with self._changed:
            return self._spool.log.counts + Counter({StepState.NOT_SCORED: len(self._spool.waiting)})

    def close(self) -> None:
        """Ends the waiting of all, and lets other processes have the directory."""
        with self._changed:
            self.closed = True
            self._changed.notify_all()
            self._spool.close()

    def _next(self) -> tuple[WaitingStep | None, float]:
        """The step whose turn it is, and when it is due."""
        tried: list[WaitingStep] = []
        for sequence, step in self._spool.waiting.items():
            if sequence in self._delivering:
                continue
            if not self._times.failures(sequence):
                # Nearly always the first that is looked at, of ten thousand: what was not tried yet goes by its age.
                due_s = self._times.due_s(sequence)
                break
            tried.append(step)
        else:
            if not tried:
                return None, 0.0
            due = {step.sequence: self._times.due_s(step.sequence) for step in tried}
            now_s = time.monotonic()
            step = min(tried, key=lambda step: (max(due[step.sequence], now_s), self._times.order(step.sequence)))
            due_s = due[step.sequence]
        return step, due_s

    def _aside(self, step: WaitingStep, problem: str, *, moved: bool) -> StepScores:
        if moved:
            problem = f"{problem} and lies at {self._spool.set_aside(step)}"
        scores = step.ended(StepState.CORRUPT, problem, time.time())
        self._spool.end(step, scores)
        self._settled(step.sequence)
        self._changed.notify_all()
        return scores

    def _settled(self, sequence: int) -> None:
        self._times.ended(sequence)
        self._problems.pop(sequence, None)
