"""Shows how a load run goes, on standard error."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Self

import click

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gradewire.load_testing.steps import Step

_LINE_EVERY_S: Final = 10.0
_CLEARED: Final = "\r\x1b[K"


class Live:
    """A line on a terminal that is written over, elsewhere a line now and then; in both a line for every step.

    Args:
        quiet: Show nothing.
    """

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._terminal = sys.stderr.isatty()
        self._told_s = time.monotonic()

    @classmethod
    @contextmanager
    def shown(cls, *, quiet: bool) -> Iterator[Self]:
        """One that leaves no half line behind."""
        live = cls(quiet=quiet)
        try:
            yield live
        finally:
            live.clear()

    def passed(self, what: str, passed_s: float, of_s: float) -> None:
        """So many seconds of `of_s` have passed; 0 where nobody knows how many there will be."""
        if self._quiet or not (self._terminal or time.monotonic() - self._told_s >= _LINE_EVERY_S):
            return
        self._told_s = time.monotonic()
        line = f"{what}: {passed_s:.0f} s" + (f" of {of_s:.0f}" if of_s else "")
        click.echo(f"{_CLEARED}{line}" if self._terminal else line, err=True, nl=not self._terminal)

    def measured(self, step: Step) -> None:
        """A step has ended."""
        if self._quiet:
            return
        self.clear()
        latency, counts = step.counts.latency, step.counts
        click.echo(
            f"{step.rate_per_s:.4g} calls/s{' (twice the knee)' if step.over_knee else ''}: {counts.due} calls, p50 "
            f"{latency.percentile_s(50) * 1e3:.1f} ms, p99 {latency.percentile_s(99) * 1e3:.1f} ms, refused "
            f"{step.share(counts.refused):.1%}, client lag p99 {step.lag_s * 1e3:.1f} ms: {step.outcome.value}",
            err=True,
        )

    def clear(self) -> None:
        """Takes the line that is written over away."""
        if self._terminal and not self._quiet:
            click.echo(_CLEARED, err=True, nl=False)
