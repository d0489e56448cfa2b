"""Report a build's progress to callers, as bars or as plain lines."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    ProgressColumn,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bars


@dataclass(frozen=True, slots=True)
class Progress:
    """A build's current step, and its progress in bytes (0 for a step without a size)."""

    step: str
    done_bytes: int = 0
    total_bytes: int = 0


Report = Callable[[Progress], None]


def ignore(_progress: Progress) -> None:
    """Report nothing."""


def waiting(report: Report) -> Callable[[str], None]:
    """Return a function for `locks.exclusive` that reports the wait as a step."""
    return lambda step: report(Progress(step))


class ConsoleBars:
    """A context that shows progress bars with `columns` if `console` is a terminal."""

    def __init__(self, console: Console, *columns: ProgressColumn) -> None:
        self._console = console
        self._bars = Bars(*columns, console=console, transient=True) if console.is_terminal else None

    def __enter__(self) -> Self:
        if self._bars is not None:
            self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bars is not None:
            self._bars.stop()


class ConsoleProgress(ConsoleBars):
    """A context whose method `report` shows a build's progress on `console`."""

    def __init__(self, console: Console, model_name: str) -> None:
        columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), DownloadColumn())
        super().__init__(console, *columns, TimeElapsedColumn(), TimeRemainingColumn())
        self._model_name = model_name
        self._step = ""

    def report(self, progress: Progress) -> None:
        """Show the current step and its progress."""
        if self._bars is None:
            if progress.step != self._step:
                size = f" ({progress.total_bytes / 1e6:.0f} MB)" if progress.total_bytes else ""
                self._console.print(f"{self._model_name}: {progress.step}{size}", markup=False, highlight=False)
            self._step = progress.step
            return
        total = progress.total_bytes or None
        if progress.step != self._step or not self._bars.task_ids:
            for task in self._bars.task_ids:
                self._bars.remove_task(task)
            self._bars.add_task(f"{self._model_name}: {progress.step}", total=total)
            self._step = progress.step
        self._bars.update(self._bars.task_ids[0], completed=progress.done_bytes, total=total)
