"""Finds the chooser that --by names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradewire.cli.choosing.metric_chooser import MetricChooser
from gradewire.cli.problems import InputError
from gradewire.cli.run.labels import label_named

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gradewire.cli.choosing.choosers import Chooser
    from gradewire.comparison.preferences import TieMargin


def open_chooser(by: str | None, *, labels: Sequence[str], lines: Mapping[str, str], tie_margin: TieMargin) -> Chooser:
    """The chooser of a run.

    Args:
        by: What --by says; None: the first metric.
        labels: Metrics of which both sides have results.
        lines: What reproduces them, by label.
        tie_margin: Of a metric that chooses.

    Raises:
        InputError: There is no such chooser.
    """
    if not labels:
        raise InputError("the sides share no metric to choose by: score both with the same --metrics")
    label = labels[0] if by is None else label_named(labels, by, "--by")
    return MetricChooser(label, lines.get(label, ""), tie_margin)
