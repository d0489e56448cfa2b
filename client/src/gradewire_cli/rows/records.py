"""Reads files row by row: JSONL, JSON, CSV and its kin, Parquet, Arrow.

A row that cannot be read is a record with a problem, never the end of the run.
"""

import glob
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal, get_args

from gradewire._input import ALIASES
from gradewire_cli.problems import InputError, redacted_url
from gradewire_cli.rows.files import GZIP, STDIN, is_url, matching_urls, open_bytes
from gradewire_cli.rows.formats import (
    Record,
    arrow_records,
    csv_records,
    json_records,
    jsonl_records,
    parquet_records,
    parquet_rows,
)
from gradewire_cli.rows.official.harness import OfficialFiles

Format = Literal["jsonl", "json", "csv", "tsv", "parquet", "arrow"]
FORMATS: Final[tuple[Format, ...]] = get_args(Format)
_SUFFIXES: Final[dict[str, Format]] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
}
_TABLE_SUFFIXES: Final = frozenset({".xlsx", ".xls", ".ods", ".xlsm"})
TEXT_CELLS: Final = frozenset({"csv", "tsv"})
"""Formats that have nothing but text: a list, a number, a missing value are all written as one."""
_KNOWN_COLUMNS: Final = frozenset(alias for names in ALIASES.values() for alias in names)


@dataclass(frozen=True, slots=True)
class Reading:
    """How files are read.

    Attributes:
        format: None: by each file's suffix, JSONL on standard input.
        encoding: "": UTF-8, or UTF-16 where a file says so.
        delimiter: Of CSV; "": by the header.
        columns: Names of columns that help to tell the delimiter, beside the usual ones.
        official: Who else wrote the files; None: they are rows by themselves.
    """

    format: Format | None = None
    encoding: str = ""
    delimiter: str = ""
    columns: Sequence[str] = ()
    official: OfficialFiles | None = None


def format_of(path: str, chosen: Format | None) -> Format:
    """Format by option, else by suffix; standard input is JSONL unless the option says otherwise.

    Raises:
        InputError: The suffix says nothing, or that a spreadsheet wrote the file.
    """
    if chosen is not None:
        return chosen
    if path == STDIN:
        return "jsonl"
    name = path.lower().removesuffix(GZIP)
    suffix = Path(name).suffix
    if suffix in _TABLE_SUFFIXES:
        raise InputError(
            f"{path}: workbooks are not read, but VLMEvalKit's (--from vlmevalkit): save the sheet as CSV UTF-8, and "
            "give that file"
        )
    if suffix == ".eval":
        raise InputError(f"{path}: is named as a log of inspect: give --from inspect")
    if (found := _SUFFIXES.get(suffix)) is None:
        shown = Path(redacted_url(name)).suffix or "no suffix"
        raise InputError(f"{path}: cannot tell the format from {shown!r}: give --input-format")
    if name != path.lower() and found in {"parquet", "arrow"}:
        raise InputError(f"{path}: {found} has a compression of its own: unpack the file (gzip -d) first")
    return found


def expanded(given: Sequence[str]) -> tuple[str, ...]:
    """The files that are named, with those that a pattern matches in its place, in the order of their names.

    Raises:
        InputError: A pattern matches no file, a file is named twice, or standard input beside other files.
    """
    paths: list[str] = []
    for path in given:
        if path != STDIN and glob.has_magic(path) and (is_url(path) or not Path(path).exists()):
            if not (matching := matching_urls(path) if is_url(path) else _matching(path)):
                raise InputError(f"{path} matches no file")
            paths += matching
        else:
            paths.append(path)
    if repeated := [path for path in paths if paths.count(path) > 1]:
        raise InputError(f"{repeated[0]} is named twice: leave one out")
    if STDIN in paths and len(paths) > 1:
        raise InputError("standard input (-) is read alone: leave the other files out, or write it to a file")
    return tuple(paths)


def _matching(pattern: str) -> list[str]:
    # Path.glob takes no absolute pattern.
    return sorted(found for found in glob.glob(pattern, recursive=True) if Path(found).is_file())  # noqa: PTH207


def in_file(record: Record, name: str, before: int) -> Record:
    """A row of one of several files, which is called so by `display_names`, behind so many rows of others."""
    return replace(record, index=before + record.index, position=f"{name} {record.position}", file=name)


def read_file(path: str, reading: Reading) -> Iterator[Record]:
    """Read a file lazily; only JSON, which is one value, is held in memory.

    Raises:
        InputError: The file is not there, cannot be read, or is not of its format as a whole.
    """
    if reading.official is not None:
        yield from reading.official.records(path)
        return
    format_ = format_of(path, reading.format)
    if format_ == "parquet":
        yield from parquet_records(path)
        return
    if format_ == "arrow":
        yield from arrow_records(path)
        return
    with open_bytes(path, reading.encoding) as stream:
        match format_:
            case "jsonl":
                yield from jsonl_records(stream)
            case "json":
                yield from json_records(path, stream)
            case _:
                known = _KNOWN_COLUMNS | {column.casefold() for column in reading.columns}
                delimiter = reading.delimiter or ("\t" if format_ == "tsv" else "")
                yield from csv_records(path, stream, known, delimiter)


def count_rows(path: str, reading: Reading) -> int:
    """Return the number of rows of a file, which must not be standard input.

    Raises:
        InputError: The file is not there, or not of the format as a whole.
    """
    format_ = format_of(path, reading.format)
    if format_ == "jsonl":
        with open_bytes(path, reading.encoding) as stream:
            return sum(not line.isspace() for line in stream)
    return parquet_rows(path) if format_ == "parquet" else sum(1 for _ in read_file(path, reading))
