"""Joins rows of the input with the output of earlier runs."""

import itertools
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from gradewire.cli.input.rows import Row
from gradewire.cli.output.result_rows import read_results
from gradewire.cli.output.table_file import TABLE_SUFFIXES
from gradewire.cli.problems import InputError


def with_stored_scores(rows: Iterator[Row], paths: Sequence[Path]) -> Iterator[tuple[Row, dict[str, Any]]]:
    """Joins rows with the output of earlier runs, by row number; the metrics of several files stand side by side.

    Args:
        rows: Rows of the input, in order; some may be left out.
        paths: Outputs of `gradewire score` on the same input, at least one.

    Raises:
        InputError: A file is not there, is no such output, ends too early, was made from other rows, or has a metric of
            the name that another file has.
    """
    copies = itertools.tee(rows, len(paths))
    for joined in zip(*(_joined(copy, path) for copy, path in zip(copies, paths, strict=True)), strict=True):
        row, first = joined[0]
        scores: dict[str, Any] = {}
        for path, (_, output) in zip(paths, joined, strict=True):
            if repeated := scores.keys() & output["scores"].keys():
                raise InputError(f"{path} has {min(repeated)}, which another --scores file has too: leave one out")
            scores |= output["scores"]
        yield row, {**first, "scores": scores}


def _joined(rows: Iterator[Row], path: Path) -> Iterator[tuple[Row, dict[str, Any]]]:
    if not path.is_file():
        raise InputError(f"{path}: there is no such file")
    if path.suffix.lower() in TABLE_SUFFIXES:
        raise InputError(f"{path}: --scores reads JSONL, not tables: gradewire score --out FILE.jsonl writes it")
    results = read_results(path)
    output: dict[str, Any] = {"index": -1}
    labels: list[str] | None = None
    for row in rows:
        while output["index"] < row.index:
            _, output = next(results, (0, {"index": math.inf}))
        if output["index"] != row.index:
            raise InputError(f"{path} has no scores of {row.place}: finish it with gradewire score --resume")
        if output["digest"] != row.digest:
            raise InputError(f"{path} was made from another text at {row.place}: score the file again")
        labels = labels or list(output["scores"])
        if list(output["scores"]) != labels:
            raise InputError(f"{path}: the metrics at {row.place} are not those of the first row: score the file again")
        yield row, output
