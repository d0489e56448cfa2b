"""Show progress on a terminal or in a log."""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import TypeAlias

import click

# Interval between lines in a log.
LINE_INTERVAL_S = 10.0
# The default window of half a minute is too short to estimate a judge's speed.
_SPEED_OVER_S = 300.0


ShowProgress: TypeAlias = Callable[[int, str], None]
"""A function that shows the number of finished rows with a note ("" means no note)."""


def rows_per_second(rate: float) -> str:
    """Return a readable rate, with two significant digits below 10 rows per second."""
    return f"{rate:.0f} rows/s" if rate >= 10 else f"{rate:.2g} rows/s"


@contextlib.contextmanager
def progress(
    label: str, total: int | None, *, quiet: bool, rows_on_stdout: bool = False, already: int = 0
) -> Iterator[ShowProgress]:
    """Show a run's progress on stderr: a bar on a terminal, otherwise a line every `LINE_INTERVAL_S` seconds."""
    if quiet or (rows_on_stdout and sys.stderr.isatty() and sys.stdout.isatty()):
        yield lambda _rows, _note: None
    elif sys.stderr.isatty():
        with _bar(label, total, already) as bar:
            yield bar
    else:
        yield _lines(label, total, already)


def _lines(label: str, total: int | None, already: int) -> ShowProgress:
    began = shown_at = time.monotonic()

    def show(rows: int, note: str) -> None:
        nonlocal shown_at
        now = time.monotonic()
        if now - shown_at < LINE_INTERVAL_S:
            return
        shown_at = now
        rate = (rows - already) / (now - began)
        line = f"{label}: {rows} rows, {rows_per_second(rate)}"
        if total is not None:
            left = f"{(total - rows) / rate:.0f} s left" if rate else "remaining time unknown"
            line = f"{label}: {rows}/{total} rows, {rows_per_second(rate)}, {left}"
        click.echo(f"{line}; {note}" if note else line, err=True)

    return show


@contextlib.contextmanager
def _bar(label: str, total: int | None, already: int) -> Iterator[ShowProgress]:
    from rich import progress as bars  # noqa: PLC0415 - only when printing
    from rich.console import Console  # noqa: PLC0415 - only when printing

    began = time.monotonic()

    def show(rows: int, note: str) -> None:
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
        yield show
