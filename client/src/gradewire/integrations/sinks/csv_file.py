"""Scores of steps in a CSV file."""

import csv
import io
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from gradewire.errors import InvalidRequest
from gradewire.integrations.validation.step_scores import StepScores

COLUMNS: Final = (
    "step",
    "name",
    "metric",
    "mean",
    "share_right",
    "items",
    "scored",
    "not_scored_share",
    "counts",
    "line",
    "digest",
)


class CsvSink:
    """Appends a line for each metric of a step; late scores come later in the file, under their own step.

    Args:
        path: Of the file; made with its folder when missing.

    Raises:
        InvalidRequest: The file has other columns.
        OSError: It cannot be used.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        header = _lines([COLUMNS])
        found = self._path.read_bytes()[: len(header)] if self._path.exists() else b""
        if not found:
            self._path.write_bytes(header)
        elif found != header:
            raise InvalidRequest(f"path={str(self._path)!r} has other columns than {', '.join(COLUMNS)}: give another")

    def write(self, scores: StepScores) -> None:
        """Appends its lines in one write."""
        rows = [
            (
                scores.step,
                scores.name,
                label,
                metric.mean,
                metric.share_right,
                scores.items,
                metric.scored,
                metric.not_scored_share,
                json.dumps(metric.counts),
                metric.line,
                metric.digest,
            )
            for label, metric in scores.metrics.items()
        ]
        with self._path.open("ab", buffering=0) as file:
            file.write(_lines(rows))

    def close(self) -> None:
        """Nothing is left to write."""


def _lines(rows: Sequence[tuple[object, ...]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode(errors="backslashreplace")
