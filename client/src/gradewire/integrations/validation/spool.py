"""Steps that wait on disk, within bounds.

```text
DIRECTORY/lock             held by the process that owns the spool
DIRECTORY/pending/*.jsonl  a file for each step that is not scored
DIRECTORY/corrupt/         files that were damaged
DIRECTORY/scores.jsonl     a line for each step that is scored or given up
```
"""

import logging
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, get_args

from gradewire._calls.arguments import check_most
from gradewire.errors import InvalidRequest
from gradewire.integrations.validation.directory_lock import DirectoryLock
from gradewire.integrations.validation.score_log import ScoreLog
from gradewire.integrations.validation.step_file import (
    DamagedStepError,
    StepHeader,
    read_outline,
    read_step,
    write_step,
)
from gradewire.integrations.validation.step_scores import StepScores, StepState

WhenFull = Literal["drop_oldest", "drop_newest"]
_SUFFIX: Final = ".jsonl"

_log = logging.getLogger("gradewire.validation")


@dataclass(frozen=True, slots=True, kw_only=True)
class SpoolLimits:
    """How much may wait on disk.

    Attributes:
        max_bytes: Of all files that wait. A single step above it is dropped.
        max_steps: Steps that wait.
        when_full: Which step gives way: the one that waits longest, or the new one.
    """

    max_bytes: int = 1024**3
    max_steps: int = 10_000
    when_full: WhenFull = "drop_oldest"

    def __post_init__(self) -> None:
        check_most("max_bytes", self.max_bytes)
        check_most("max_steps", self.max_steps)
        if self.when_full not in get_args(WhenFull):
            raise InvalidRequest(f"when_full={self.when_full!r}: give one of {', '.join(get_args(WhenFull))}")


@dataclass(frozen=True, slots=True)
class WaitingStep:
    """A step on disk.

    Attributes:
        sequence: Its place in the order of submission, over all processes that used the directory.
        header: Its first line.
        items: Number of its rows.
        size_bytes: Of its file.
        path: Of its file.
    """

    sequence: int
    header: StepHeader
    items: int
    size_bytes: int
    path: Path

    def ended(self, state: StepState, problem: str, ended_unix_s: float | None = None) -> StepScores:
        """What is known of it without its scores."""
        return StepScores(
            step=self.header.step,
            name=self.header.name,
            items=self.items,
            state=state,
            problem=problem,
            submitted_unix_s=self.header.submitted_unix_s,
            ended_unix_s=ended_unix_s,
        )


class Spool:
    """Steps that wait on disk. Not thread-safe: callers on several threads hold a lock.

    Args:
        directory: Made when missing.
        limits: How much may wait.

    Attributes:
        log: Scores of steps that have ended.
        waiting: Steps on disk by sequence, oldest first.
        damaged: Files that were set aside when the directory was opened, as (sequence, step, why).

    Raises:
        InvalidRequest: The directory is in use.
        OSError: It cannot be used.
    """

    def __init__(self, directory: Path, limits: SpoolLimits) -> None:
        self._pending = directory / "pending"
        self._corrupt = directory / "corrupt"
        self._pending.mkdir(parents=True, exist_ok=True)
        self._limits = limits
        self._lock = DirectoryLock(directory)
        self.waiting: dict[int, WaitingStep] = {}
        self.damaged: list[tuple[int, int, str]] = []
        try:
            self.log = ScoreLog(directory / "scores.jsonl")
            self._open_pending()
        except BaseException:
            self._lock.release()
            raise
        beyond = [self.log.last_sequence, *self.waiting, *(sequence for sequence, _, _ in self.damaged)]
        self._next = max(beyond) + 1
        self._bytes = sum(step.size_bytes for step in self.waiting.values())

    def add(self, header: StepHeader, rows: Iterable[bytes]) -> WaitingStep:
        """Writes a step; what has to give way then is told by `above_limits`.

        Raises:
            TooLargeStepError: It takes more than all that may wait, or than is left where new ones give way.
            OSError: The disk takes no more.
        """
        sequence, self._next = self._next, self._next + 1
        path = self._pending / f"{sequence:012d}-step{header.step}{_SUFFIX}"
        items, size = write_step(path, header, rows, self._room())
        step = WaitingStep(sequence, header, items, size, path)
        self.waiting[sequence] = step
        self._bytes += size
        return step

    def refuse(self, header: StepHeader, problem: str, ended_unix_s: float) -> StepScores:
        """Notes a step that never was on disk.

        Raises:
            OSError: The disk takes no more.
        """
        sequence, self._next = self._next, self._next + 1
        scores = StepScores(
            step=header.step,
            name=header.name,
            items=0,
            state=StepState.DROPPED,
            problem=problem,
            submitted_unix_s=header.submitted_unix_s,
            ended_unix_s=ended_unix_s,
        )
        self.log.add(sequence, scores)
        return scores

    def refuses_new(self) -> str:
        """Why a new step has to give way before it is written; empty where it has not."""
        if self._limits.when_full == "drop_newest" and len(self.waiting) >= self._limits.max_steps:
            return f"{len(self.waiting)} steps wait, and more than max_steps={self._limits.max_steps} may not"
        return ""

    def above_limits(self, kept: Container[int]) -> Iterator[tuple[WaitingStep, str]]:
        """Steps to remove, oldest first, each with why, until what waits is within the limits.

        Args:
            kept: Sequences of those that leave by themselves at once.
        """
        limits = self._limits
        if len(self.waiting) <= limits.max_steps and self._bytes <= limits.max_bytes:
            return
        for step in list(self.waiting.values()):
            if step.sequence in kept:
                continue
            if len(self.waiting) > limits.max_steps:
                yield step, f"more than max_steps={limits.max_steps} waited, and this one longest"
            elif self._bytes > limits.max_bytes:
                yield step, f"more than max_bytes={limits.max_bytes} waited, and this one longest"
            else:
                return

    def read(self, step: WaitingStep) -> list[Any]:
        """Its rows.

        Raises:
            DamagedStepError: They are not what was written.
            OSError: The file cannot be read.
        """
        return read_step(step.path)[1]

    def end(self, step: WaitingStep, scores: StepScores) -> None:
        """Writes how it ended, then removes its file: killed in between, the log knows that it has ended.

        Raises:
            OSError: The disk takes no more; the step waits on.
        """
        self.log.add(step.sequence, scores)
        step.path.unlink(missing_ok=True)
        self._forget(step)

    def drop(self, step: WaitingStep, scores: StepScores) -> None:
        """Removes its file even where nothing can be written about it: the disk may be full."""
        try:
            self.log.add(step.sequence, scores)
        except OSError:
            _log.exception("step %d of %s was dropped, and that could not be written down", scores.step, scores.name)
        step.path.unlink(missing_ok=True)
        self._forget(step)

    def set_aside(self, step: WaitingStep) -> Path:
        """Moves its file to the damaged ones, and says where it lies now."""
        self._forget(step)
        return self._move(step.path)

    def close(self) -> None:
        """Lets other processes have the directory."""
        self._lock.release()

    def _room(self) -> int:
        taken = self._bytes if self._limits.when_full == "drop_newest" else 0
        return self._limits.max_bytes - taken

    def _forget(self, step: WaitingStep) -> None:
        if self.waiting.pop(step.sequence, None) is not None:
            self._bytes -= step.size_bytes

    def _move(self, path: Path) -> Path:
        self._corrupt.mkdir(exist_ok=True)
        return path.rename(self._corrupt / path.name)

    def _open_pending(self) -> None:
        for path in sorted(self._pending.iterdir()):
            if path.name.startswith(".") and path.name.endswith(".partial"):
                path.unlink()
                continue
            numbers = path.name.removesuffix(_SUFFIX).split("-step", maxsplit=1)
            try:
                sequence, step = (int(number) for number in numbers)
            except ValueError:
                _log.warning("%s is no step of this spool and is left alone", path)
                continue
            if self.log.has(sequence):
                path.unlink()
                continue
            try:
                header, items = read_outline(path)
            except DamagedStepError as error:
                moved = self._move(path)
                self.damaged.append((sequence, step, f"its file was damaged ({error}) and lies at {moved}"))
                continue
            self.waiting[sequence] = WaitingStep(sequence, header, items, path.stat().st_size, path)
