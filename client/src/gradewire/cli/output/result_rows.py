"""Rows of an output as lines of JSON."""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from gradewire.cli.output.files import plain
from gradewire.cli.output.metric_lines import lines_of, with_current_names, with_lines, without_lines
from gradewire.cli.problems import InputError
from gradewire.results import Status
from gradewire_proto.conventions.metric_lines import current


def encode_row(row: Mapping[str, Any]) -> bytes:
    """One line of JSON; readable letters, but for lone surrogates, which UTF-8 cannot hold.

    A kept column may hold NaN or an infinity, which JSON does not have: they become null.
    """
    try:
        text = json.dumps(row, ensure_ascii=False, default=str, allow_nan=False)
    except ValueError:
        text = json.dumps(plain(row), ensure_ascii=False, default=str, allow_nan=False)
    # As a surrogate is escaped here, so it is in JSON.
    return text.encode(errors="backslashreplace") + b"\n"


def encode_rows(rows: Iterable[Mapping[str, Any]], *, first: bool) -> bytes:
    """Rows of an output; the first row of all has the lines of its metrics, which are those of the others too."""
    return b"".join(encode_row(row if first and place == 0 else without_lines(row)) for place, row in enumerate(rows))


def output_files(output: Path) -> list[Path]:
    """Files with the rows of an output: itself, or the parts of a folder that `gradewire bulk` wrote, in order."""
    if not output.is_dir():
        return [output]
    # Where a part was scored again both may be there, and "done" comes before "unanswered".
    found: dict[str, Path] = {}
    for part in sorted(output.glob("part-*.jsonl")):
        found.setdefault(part.name.partition(".")[0], part)
    return list(found.values())


def read_results(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Rows of an output file with their end (offset in bytes); a torn last line is left out.

    Every row has the lines of its metrics, which stand in the first row of a file alone; metrics have the names that
    they have now.

    Raises:
        InputError: A line in the middle is no output row.
    """
    end = 0
    lines: dict[str, str] = {}
    with path.open("rb") as stream:
        for number, line in enumerate(stream, 1):
            end += len(line)
            if not line.endswith(b"\n"):
                return
            try:
                row = with_current_names(json.loads(line))
                complete = isinstance(row["index"], int) and row["digest"]
            except (ValueError, KeyError, TypeError, AttributeError):
                complete = False
            if not complete:
                raise InputError(f"{path}: line {number} is no output row of gradewire score: give another file")
            lines |= lines_of(row)
            yield end, with_lines(row, lines)


def former_labels(path: Path) -> list[str]:
    """Labels in the first row of an output file that have another name now; none where there is no whole row."""
    with path.open("rb") as stream:
        line = stream.readline()
    try:
        return [label for label in json.loads(line)["scores"] if current(label) != label]
    except (ValueError, KeyError, TypeError):
        return []


def count_results(path: Path) -> int:
    """Rows of an output file as it stands: whole lines, even where one is no output row."""
    with path.open("rb") as stream:
        return sum(line.endswith(b"\n") for line in stream)


def may_pass(row: Mapping[str, Any]) -> bool:
    """Whether a result of the row failed for want of a server or of time, so that trying again may help."""
    return any(Status(score["status"]).may_pass for score in row["scores"].values())
