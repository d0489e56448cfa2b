"""Outputs of earlier runs of `gradewire score`, read in the place of a scoring."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradewire_cli.compare.sides import Collected
from gradewire_cli.problems import InputError, named_errors
from gradewire_cli.results.results_file import lines_of, output_files, read_results
from gradewire_cli.rows.cells import CellReading
from gradewire_cli.rows.files import STDIN
from gradewire_cli.rows.formats import Record
from gradewire_cli.rows.row import read_rows
from gradewire_cli.scoring.pairs import results_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gradewire_cli.rows.input_file import InputFile
    from gradewire_cli.rows.row import Row, RowOptions
    from gradewire_cli.scoring.pairs import Result

_PEEK_BYTES = 1 << 22
# Columns that only `gradewire score` writes, beside the id that many files have.
_MARKS = {"index": int, "scores": dict, "digest": str}


def are_outputs(paths: Sequence[str]) -> bool:
    """Whether the files are outputs of `gradewire score`, by their first lines.

    Raises:
        InputError: Some are and others are not.
    """
    there = {path: path != STDIN and _is_output(path) for path in paths}
    if len(set(there.values())) > 1:
        output, other = (next(path for path in paths if there[path] is kind) for kind in (True, False))
        raise InputError(
            f"{output} is an output of gradewire score and {other} is none: score {other} with the same --metrics "
            "first, or give the answers of both"
        )
    return all(there.values())


def _is_output(path: str) -> bool:
    if not (files := output_files(Path(path))):
        raise InputError(f"{path} is a folder without parts of gradewire bulk: give a file")
    with named_errors(path), files[0].open("rb") as stream:
        first = stream.readline(_PEEK_BYTES)
    try:
        row = json.loads(first)
    except (ValueError, RecursionError):
        return False
    return isinstance(row, dict) and all(isinstance(row.get(name), kind) for name, kind in _MARKS.items())


def read_outputs(source: InputFile) -> Collected:
    """Rows and results of outputs; of the texts those columns that --keep-columns kept.

    Raises:
        InputError: A line is no output row, a score is no number, or a column that an option names was not kept.
    """
    rows: list[Row] = []
    found = Collected(rows)
    for path in source.paths:
        labels: list[str] = []
        for row, output in _rows(path, source.options):
            results = _results(f"{path} {row.position}", output)
            labels = labels or list(results)
            if list(results) != labels:
                raise InputError(
                    f"{path}: the metrics at {row.position} are not those of the first row: score it again"
                )
            _check_lines(f"{path} {row.position}", found.lines.setdefault(path, lines_of(output)), lines_of(output))
            found.results[len(rows)] = results
            rows.append(replace(row, index=len(rows), position=f"{path} {row.position}", file=path))
        if not labels:
            raise InputError(f"{path} has no rows{' that --where takes' if source.options.where else ''}")
        if unknown := [label for label in labels if label not in found.lines[path]]:
            found.notes.append(
                f"{path}: its first row, which says by what definition it was scored, is not there: whether its scores "
                f"of {', '.join(unknown)} compare with others is not known"
            )
    if not any(row.kept_columns for row in rows):
        found.notes.append(
            "the outputs have no texts to show: gradewire score --keep-columns all keeps them beside the scores"
        )
    return found


def _rows(path: str, options: RowOptions) -> Iterator[tuple[Row, dict[str, Any]]]:
    """Rows made of the columns that an output kept, with the output rows."""
    options = replace(options, file=path, needed=())
    results = itertools.chain.from_iterable(map(read_results, output_files(Path(path))))
    for number, (_, output) in enumerate(results, 1):
        columns = output.get("input", {})
        if number == 1:
            _check_columns(path, columns, options)
        record = Record(output["index"], f"line {number}", columns)
        for row in read_rows([record], options, CellReading()):
            identifier = str(output.get("id", row.id))
            yield (
                replace(
                    row,
                    id=identifier,
                    # A row without an id of its own has its number in the place of one.
                    has_id=identifier != str(output["index"]),
                    digest=str(output["digest"]),
                    picture_digest=str(output.get("picture_digest", "")),
                    kept_columns=columns,
                ),
                output,
            )


def _check_columns(path: str, columns: Mapping[str, Any], options: RowOptions) -> None:
    mapped = [("--map", column) for column in options.columns.values()]
    mapped += [("--where", column) for column in options.where]
    for option, column in mapped:
        if column not in columns:
            raise InputError(
                f"{option} {column}: {path} has not kept this column: gradewire score --keep-columns {column} keeps it"
            )


def _check_lines(place: str, first: Mapping[str, str], own: Mapping[str, str]) -> None:
    """Refuses a file whose rows were scored by two definitions, as files that were put together are."""
    if other := [label for label, line in own.items() if first.get(label) != line]:
        raise InputError(
            f"{place} was scored by {own[other[0]]} and the first row by {first.get(other[0], 'nobody knows what')}: "
            "give each as a file of its own, or score them again"
        )


def _results(place: str, output: Mapping[str, Any]) -> dict[str, Result]:
    try:
        return results_of(output)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{place} holds no results of gradewire score ({error}): score it again") from error
