"""The spool of steps that wait for scoring. It chooses the next step to try, and drops steps if too many wait."""

import contextlib
import json
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any, Final, Literal, get_args

from gradewire._calls.retries import SPREAD, wait_after_s
from gradewire._fork_safety import forget_in_children
from gradewire.errors import InvalidRequest, TransportError
from gradewire.integrations.training.step_database import StepDatabase, StoredStep
from gradewire.integrations.training.steps import StepHeader, StepScores, StepState, WaitingStep, decode_row, latest_run
from gradewire.options import check_most
from gradewire_proto.wire_rules import Backoff

WhenFull = Literal["drop_oldest", "drop_newest"]

_BACKOFF: Final = Backoff(0.5, 30.0, SPREAD)
_REFUSED_WAIT_S: Final = 60.0
"""Seconds to wait after the server refused a step. Until somebody changes the server, another attempt would fail."""
_MOST_LISTED: Final = 10_000
"""Maximum number of finished steps in memory, a few kilobytes each; `scores.jsonl` contains all steps."""
_MOST_BYTES: Final = 10**9 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SpoolLimits:
    """Limits on the steps that wait on disk.

    Attributes:
        max_bytes: Maximum size of all waiting steps together, in bytes. A larger step is dropped.
        max_steps: Maximum number of waiting steps.
        when_full: The step to drop above a limit: the step that has waited longest, or the new step.
    """

    max_bytes: int = 1024**3
    max_steps: int = 10_000
    when_full: WhenFull = "drop_oldest"

    def __post_init__(self) -> None:
        check_most("max_bytes", self.max_bytes)
        check_most("max_steps", self.max_steps)
        if self.when_full not in get_args(WhenFull):
            raise InvalidRequest(f"when_full={self.when_full!r}: give one of {', '.join(get_args(WhenFull))}")


class Spool:
    """The waiting steps and the scores of finished steps. Several threads may use a spool at once.

    No method waits for the network. `damaged` contains the steps that were damaged when the directory was opened.

    Raises:
        InvalidRequest: The directory is in use, or another version wrote it.
        OSError: The directory cannot be used.
    """

    def __init__(self, directory: Path, limits: SpoolLimits) -> None:
        self._limits = limits
        self._changed = threading.Condition()
        self._server_failures = 0
        self._server_due_s = 0.0
        self._waiting: dict[int, WaitingStep] = {}
        self.closed = False
        self._database = StepDatabase(directory)
        try:
            self._finished = self._database.scores(_MOST_LISTED)
            self._counts = self._database.counts()
            self._next = self._database.next_sequence()
            self.damaged = self._open_waiting()
        except BaseException:
            self._database.close()
            raise
        forget_in_children(self)

    def add(self, header: StepHeader, rows: Iterable[bytes]) -> tuple[StepState, list[StepScores]]:
        """Write a step. Return its state, and the results of all dropped steps, possibly including this step.

        Raises:
            OSError: The step cannot be written, for example on a full disk; all waiting steps are kept.
        """
        with self._changed:
            taken, problem = self._read_rows(rows)
            if problem:
                return StepState.DROPPED, [self.refuse(header, problem)]
            stored = StoredStep.of(json.dumps(asdict(header)).encode(), b"".join(taken))
            step = WaitingStep(self._next, header, len(taken), len(stored.header) + len(stored.rows))
            dropped = {
                each.sequence: each.finished(StepState.DROPPED, why, time.time())
                for each, why in self._over_limits(step)
            }
            self._database.write(dropped, step, stored)
            self._next += 1
            self._waiting[step.sequence] = step
            self._settle(dropped)
            is_kept = step.sequence in self._waiting
            return StepState.NOT_SCORED if is_kept else StepState.DROPPED, list(dropped.values())

    def refuse(self, header: StepHeader, problem: str) -> StepScores:
        """Record a step as dropped without storing its rows; raise OSError if this record cannot be written."""
        with self._changed:
            scores = header.result(StepState.DROPPED, problem, time.time())
            self._finish({self._next: scores})
            self._next += 1
            return scores

    def take(self) -> WaitingStep | None:
        """Wait until a step is due for scoring, and return the step; return None once the spool is closed."""
        with self._changed:
            while not self.closed:
                now_s = time.monotonic()
                step = self._next_due(now_s)
                due_s = 0.0 if step is None else self._due_s(step)
                if step is None or due_s > now_s:
                    self._changed.wait(None if step is None else due_s - now_s)
                elif step.unwritten is None:
                    return step
                else:
                    with contextlib.suppress(OSError):
                        self._keep(step, step.unwritten)
            return None

    def read(self, step: WaitingStep) -> list[Any] | StepScores | None:
        """Return a step's items, a damaged step's result, or None if the step was dropped after `take` returned it."""
        with self._changed:
            if self._is_gone(step):
                return None
            stored = self._database.read(step.sequence)
        try:
            stored.checked_header(step.header)
            return [decode_row(line) for line in stored.rows.splitlines()]
        except (ValueError, TypeError) as error:
            problem = self._database.set_aside(step.sequence, step.header.step, stored, error)
            with self._changed:
                scores = step.finished(StepState.CORRUPT, problem, time.time())
                self._finish({step.sequence: scores})
                return scores

    def failed(self, step: WaitingStep, error: Exception, problem: str = "") -> float:
        """Record why a step was not scored; return the seconds until the next attempt, or 0 if the step is gone."""
        with self._changed:
            if self._is_gone(step):
                return 0.0
            step.problem = problem or f"{type(error).__name__}: {error}"
            step.failures += 1
            wait_s, now_s = _REFUSED_WAIT_S, time.monotonic()
            step.is_refused = True
            if isinstance(error, TransportError) and error.may_pass:
                step.is_refused = False
                self._server_failures += 1
                wait_s = wait_after_s(error, _BACKOFF, self._server_failures)
                self._server_due_s = now_s + wait_s
            step.due_s = now_s + wait_s
            self._changed.notify_all()
            return wait_s

    def scored(self, step: WaitingStep) -> bool:
        """Mark a scored step as being delivered, and return True. If the step has been dropped, return False."""
        with self._changed:
            self._server_failures = 0
            self._server_due_s = 0.0
            step.is_refused = False  # closing waits for the delivery
            step.is_delivering = not self._is_gone(step)
            return step.is_delivering

    def delivered(self, step: WaitingStep, scores: StepScores) -> None:
        """Store the scores and remove the step.

        Raises:
            OSError: The scores cannot be written. `take` and `close` try again, without scoring the step again.
        """
        with self._changed:
            step.is_delivering = False
            if not self.closed:
                self._keep(step, scores)

    def wait_empty(self, timeout_s: float | None) -> bool:
        """Wait until all steps are scored and delivered; return False if steps are left after `timeout_s`."""
        with self._changed:
            self._changed.wait_for(lambda: self.closed or not self._waiting, timeout_s)
            return not self._waiting

    def wait_unrefused(self, timeout_s: float) -> bool:
        """Wait like `wait_empty`, but not for steps whose last attempt was refused."""
        with self._changed:
            self._changed.wait_for(
                lambda: self.closed or all(step.is_refused for step in self._waiting.values()), timeout_s
            )
            return not self._waiting

    def wait_for(self, step: int, name: str, timeout_s: float | None) -> StepScores | None:
        """Wait until a step is scored and delivered, and return its result; return None if it has no scores by then."""

        def is_waiting() -> bool:
            return any((each.header.step, each.header.name) == (step, name) for each in self._waiting.values())

        with self._changed:
            self._changed.wait_for(lambda: self.closed or not is_waiting(), timeout_s)
        found = next((scores for scores in self.results() if (scores.step, scores.name) == (step, name)), None)
        return found if found is not None and found.state is StepState.SCORED else None

    def runs(self) -> list[str]:
        """Return the runs of the finished and the waiting steps, in the order of their first submission."""
        with self._changed:
            runs = {sequence: scores.run for sequence, scores in self._finished.items()}
            runs |= {sequence: step.header.run for sequence, step in self._waiting.items()}
        return list(dict.fromkeys(run for _, run in sorted(runs.items())))

    def results(self, run: str | None = None) -> list[StepScores]:
        """Return the result of a run's latest submission for each name and step, sorted by step.

        None means the run of the latest submission. A damaged step whose run is unknown counts as a step of every run.
        """
        with self._changed:
            waiting = {
                sequence: step.finished(StepState.NOT_SCORED, step.problem) for sequence, step in self._waiting.items()
            }
            submitted = sorted((self._finished | waiting).items(), key=itemgetter(0))
        if run is None:
            run = latest_run((scores.run, sequence) for sequence, scores in submitted)
        of_run = (
            scores
            for _, scores in submitted
            if scores.run == run or (not scores.run and scores.state is StepState.CORRUPT)
        )
        latest = {(scores.name, scores.step): scores for scores in of_run}
        return sorted(latest.values(), key=lambda scores: (scores.step, scores.name))

    def counts(self) -> Counter[StepState]:
        """Return the number of steps in each state since the directory was created."""
        with self._changed:
            return self._counts + Counter({StepState.NOT_SCORED: len(self._waiting)})

    def close(self) -> None:
        """Wake all waiting threads, and release the directory for other processes."""
        with self._changed:
            if not self.closed:
                for step in list(self._waiting.values()):
                    with contextlib.suppress(OSError):
                        if step.unwritten is not None:
                            self._keep(step, step.unwritten)
                self.closed = True
                self._database.close()
            self._changed.notify_all()

    def forget(self) -> None:
        """In a forked child, leave the directory to the parent."""
        self._database.forget(is_closed=self.closed)

    def _is_gone(self, step: WaitingStep) -> bool:
        return self.closed or step.sequence not in self._waiting

    def _read_rows(self, rows: Iterable[bytes]) -> tuple[list[bytes], str]:
        """Return a new step's rows, or the reason for dropping it. Stop at the size limit; `rows` may be endless."""
        limits = self._limits
        room = limits.max_bytes
        if limits.when_full == "drop_newest":
            room -= self._size_bytes()
            if len(self._waiting) >= limits.max_steps:
                return [], f"{len(self._waiting)} steps are waiting already (max_steps={limits.max_steps})"
        taken: list[bytes] = []
        left = min(room, _MOST_BYTES)
        for row in rows:
            taken.append(row)
            left -= len(row)
            if left < 0:
                return [], f"the step's items need more than the {room} bytes that are left within max_bytes"
        return taken, ""

    def _over_limits(self, added: WaitingStep) -> Iterator[tuple[WaitingStep, str]]:
        limits = self._limits
        steps, size_bytes = len(self._waiting) + 1, self._size_bytes() + added.size_bytes
        for step in (*self._waiting.values(), added):
            if step.is_delivering:
                continue  # this step will be removed soon
            if steps > limits.max_steps:
                yield step, f"more than max_steps={limits.max_steps} steps waited, and this step had waited longest"
            elif size_bytes > limits.max_bytes:
                yield step, f"more than max_bytes={limits.max_bytes} bytes waited, and this step had waited longest"
            else:
                return
            steps, size_bytes = steps - 1, size_bytes - step.size_bytes

    def _size_bytes(self) -> int:
        return sum(step.size_bytes for step in self._waiting.values())

    def _due_s(self, step: WaitingStep) -> float:
        return max(self._server_due_s, step.due_s)

    def _next_due(self, now_s: float) -> WaitingStep | None:
        tried: list[WaitingStep] = []
        for step in self._waiting.values():
            if not (step.is_delivering or step.failures):
                # Steps without a failure go first, oldest first. Usually the loop ends at its first step.
                return step
            if not step.is_delivering:
                tried.append(step)
        # First the earliest due step, then the step with the fewest failures, then the oldest step.
        turns = {step: (max(self._due_s(step), now_s), step.failures, step.sequence) for step in tried}
        return min(turns, key=turns.__getitem__, default=None)

    def _keep(self, step: WaitingStep, scores: StepScores) -> None:
        """Store a step's scores and remove the step. On an OSError, keep the scores in memory and raise the error."""
        try:
            self._finish({step.sequence: scores})
        except OSError as error:
            step.unwritten = scores
            self.failed(step, error, str(error))
            self._changed.notify_all()
            raise

    def _finish(self, finished: Mapping[int, StepScores]) -> None:
        """Store the results of steps and remove the steps. On an OSError, keep the steps and raise the error."""
        self._database.write(finished)
        self._settle(finished)

    def _settle(self, finished: Mapping[int, StepScores]) -> None:
        for sequence, scores in finished.items():
            self._waiting.pop(sequence, None)
            self._counts[scores.state] += 1
            self._finished[sequence] = scores
        for sequence in list(self._finished)[: max(0, len(self._finished) - _MOST_LISTED)]:
            del self._finished[sequence]
        self._database.export()
        self._changed.notify_all()

    def _open_waiting(self) -> list[StepScores]:
        """Read the steps that earlier processes left; set damaged steps aside and return their results."""
        damaged = {}
        for sequence, step, stored in self._database.steps():
            try:
                header = stored.checked_header()
            except (ValueError, TypeError) as error:
                problem = self._database.set_aside(sequence, step, stored, error)
                damaged[sequence] = StepScores(
                    step, "", 0, StepState.CORRUPT, problem=problem, ended_unix_s=time.time()
                )
            else:
                size_bytes = len(stored.header) + len(stored.rows)
                # Count the rows, because the digest covers the rows but not the stored count.
                self._waiting[sequence] = WaitingStep(sequence, header, stored.rows.count(b"\n"), size_bytes)
        with self._changed:
            self._finish(damaged)
        return list(damaged.values())
