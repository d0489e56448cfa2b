"""Progress on a terminal or in a log; rich is imported when a bar is shown, not before."""

import contextlib
import math
import sys
import time
from collections.abc import Iterator
from typing import Protocol

import click

# A terminal shows the bar; a log file gets a line now and then.
LINE_INTERVAL_S = 10.0
# A judge's rows come in a few at a time: the time left is reckoned from longer than the bar's own half minute.
_SPEED_OVER_S = 300.0


class Progress(Protocol):
    """Shows how many rows are done."""

    def done(self, rows: int, note: str = "") -> None:
        """Show that `rows` are done in all, with a further `note`."""
        ...


def rows_per_second(rate: float) -> str:
    """Return a rate for people, also where a row takes seconds."""
    return f"{rate:.0f} rows/s" if rate >= 10 else f"{rate:.2g} rows/s"


@contextlib.contextmanager
def progress(
    label: str, total: int | None, *, quiet: bool, rows_on_stdout: bool = False, already: int = 0
) -> Iterator[Progress]:
    """Show how far a run is, on stderr: a bar on a terminal, else a line every `LINE_INTERVAL_S`."""
    if quiet or (rows_on_stdout and sys.stderr.isatty() and sys.stdout.isatty()):
        yield _Silent()
    elif sys.stderr.isatty():
        with _bar(label, total, already) as bar:
            yield bar
    else:
        yield _Lines(label, total, already)


class _Silent:
    def done(self, rows: int, note: str = "") -> None:
        """Show nothing."""


class _Lines:
    """A plain line at intervals, and the rate and remaining time in it."""

    def __init__(self, label: str, total: int | None, already: int) -> None:
        self._label = label
        self._total = total
        self._already = already
        self._began = self._told = time.monotonic()

    def done(self, rows: int, note: str = "") -> None:
        now = time.monotonic()
        if now - self._told < LINE_INTERVAL_S:
            return
        self._told = now
        rate = (rows - self._already) / (now - self._began)
        line = f"{self._label}: {rows} rows, {rows_per_second(rate)}"
        if self._total is not None:
            left_s = (self._total - rows) / rate if rate else math.inf
            left = f"{left_s:.0f} s left" if math.isfinite(left_s) else "no end in sight"
            line = f"{self._label}: {rows}/{self._total} rows, {rows_per_second(rate)}, {left}"
        click.echo(f"{line}; {note}" if note else line, err=True)


@contextlib.contextmanager
def _bar(label: str, total: int | None, already: int) -> Iterator[Progress]:
    from rich import progress as bars  # noqa: PLC0415 - only when printing
    from rich.console import Console  # noqa: PLC0415 - only when printing

    began = time.monotonic()

    class _Bar:
        def done(self, rows: int, note: str = "") -> None:
            rate = (rows - already) / max(time.monotonic() - began, 1e-9)
            display.update(task, completed=rows, rate=note or rows_per_second(rate))

    with bars.Progress(
        bars.TextColumn("{task.description}"),
        bars.BarColumn(),
        bars.MofNCompleteColumn(),
        bars.TextColumn("{task.fields[rate]}"),
        bars.TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        speed_estimate_period=_SPEED_OVER_S,
    ) as display:
        task = display.add_task(label, total=total, completed=already, rate="")
        yield _Bar()
