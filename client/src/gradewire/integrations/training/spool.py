"""Steps that wait on disk within bounds, the lock on their directory, and the log of finished scores."""

import contextlib
import fcntl
import json
import logging
import os
from collections import Counter, OrderedDict
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, get_args

from gradewire._fork_safety import forget_in_children
from gradewire.errors import InvalidRequest
from gradewire.integrations.training.step_file import DamagedStepError, StepHeader, read_outline, read_step, write_step
from gradewire.integrations.training.step_scores import StepScores, StepState
from gradewire.options import check_most

_log = logging.getLogger("gradewire.validation")


class DirectoryLock:
    """Held from when it is made until `release`.

    Args:
        directory: Exists.

    Raises:
        InvalidRequest: Another owner has it, in this process or another one.
    """

    def __init__(self, directory: Path) -> None:
        self._file: int | None = os.open(directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.pread(self._file, 20, 0).decode(errors="replace").strip() or "another process"
            os.close(self._file)
            raise InvalidRequest(
                f"directory={str(directory)!r} is in use by process {owner}: give each scorer one of its own "
                "(each rank of a distributed training too), or close the other"
            ) from None
        except OSError as error:
            _log.warning("%s cannot be locked (%s): only one scorer may use it at a time", directory, error)
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, str(os.getpid()).encode(), 0)
        forget_in_children(self)

    def release(self) -> None:
        """Lets others have it; twice is fine."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def forget(self) -> None:
        """In a forked child: closes its copy, which would hold the lock beyond the parent's end."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                os.close(self._file)
            self._file = None


_MOST_KEPT: Final = 10_000
"""Steps whose scores stay in memory, a few kilobytes each; the file has all."""


class ScoreLog:
    """Appends to a file, and keeps the newest in memory.

    Args:
        path: Of the file; read when there is one. A line that was cut off is left where it is and named in the log.

    Attributes:
        last_sequence: The largest number of a step in the file; -1 without any.
        counts: Number of steps in the file by how they ended.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._kept: OrderedDict[int, StepScores] = OrderedDict()
        self._ended: set[int] = set()
        self.last_sequence = -1
        self.counts: Counter[StepState] = Counter()
        self._ends_in_line = True
        if path.exists():
            self._read()

    def add(self, sequence: int, scores: StepScores) -> None:
        """Writes one step, whole in one call.

        Raises:
            OSError: The disk takes no more; nothing is kept then.
        """
        line = json.dumps({"sequence": sequence, **scores.to_dict()}).encode() + b"\n"
        with self._path.open("ab", buffering=0) as file:
            file.write(line if self._ends_in_line else b"\n" + line)
        self._ends_in_line = True
        self._keep(sequence, scores)

    def has(self, sequence: int) -> bool:
        """Whether the file told of this step when it was opened."""
        return sequence in self._ended

    def kept(self) -> dict[int, StepScores]:
        """The 10 000 that ended last, by their numbers."""
        return dict(self._kept)

    def _keep(self, sequence: int, scores: StepScores) -> None:
        self.counts[scores.state] += 1
        self._kept[sequence] = scores
        self._kept.move_to_end(sequence)
        self.last_sequence = max(self.last_sequence, sequence)
        if len(self._kept) > _MOST_KEPT:
            self._kept.popitem(last=False)

    def _read(self) -> None:
        line = b"\n"
        with self._path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if not line.strip():
                    continue
                try:
                    values: dict[str, Any] = json.loads(line)
                    sequence = int(values.pop("sequence"))
                    scores = StepScores.from_dict(values)
                except (ValueError, KeyError, TypeError, AttributeError) as error:
                    _log.warning("%s, line %d cannot be read and is passed over: %s", self._path, number, error)
                    continue
                self._ended.add(sequence)
                self._keep(sequence, scores)
        self._ends_in_line = line.endswith(b"\n")


WhenFull = Literal["drop_oldest", "drop_newest"]
_SUFFIX: Final = ".jsonl"


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
