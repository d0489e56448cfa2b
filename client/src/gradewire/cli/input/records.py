"""Reads files row by row: JSONL, JSON, CSV, Parquet.

A row that cannot be read is a record with a problem, never the end of the run.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, get_args

from gradewire.cli.problems import InputError, named_errors

if TYPE_CHECKING:
    from _csv import Reader as CsvReader
    from collections.abc import Iterator, Mapping

    from pyarrow.parquet import ParquetFile

Format = Literal["jsonl", "json", "csv", "parquet"]
FORMATS: tuple[Format, ...] = get_args(Format)
_SUFFIXES: dict[str, Format] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".csv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
}
STDIN = "-"
# What pandas, numpy and Python write into a CSV cell where a number is missing.
_MISSING_CELLS = frozenset({"nan", "NaN"})


@dataclass(frozen=True, slots=True)
class Record:
    """A row as it stands in the file.

    Attributes:
        index: Row number from 0; blank lines of a JSONL or CSV file are no rows.
        place: Where it stands, for people: "line 7", or "row 7" where the format has no lines.
        fields: Values by column; None when the row cannot be read.
        problem: Why not; empty when it can.
        raw: What tells an unreadable row apart from another: of JSON its text, bytes that are no UTF-8 as lone
            surrogates. Empty otherwise.
    """

    index: int
    place: str
    fields: Mapping[str, Any] | None
    problem: str = ""
    raw: str = ""


def format_of(path: str, chosen: str | None) -> Format:
    """Format by option, else by suffix; standard input is JSONL unless the option says otherwise.

    Raises:
        InputError: The suffix says nothing.
    """
    if chosen is not None:
        return next(known for known in FORMATS if known == chosen)
    if (found := suffix_format(path)) is None:
        raise InputError(
            f"{path}: cannot tell the format from {Path(path).suffix.lower() or 'no suffix'!r}: give --input-format"
        )
    return found


def suffix_format(path: str) -> Format | None:
    """What `format_of` takes where no option says it; None where the suffix says nothing."""
    return "jsonl" if path == STDIN else _SUFFIXES.get(Path(path).suffix.lower())


def read_records(path: str, format_: Format) -> Iterator[Record]:
    """Reads a file ("-": standard input) lazily; only JSON, which is one value, is held in memory.

    Raises:
        InputError: The file is not there, cannot be read, or is not of the format as a whole.
    """
    if format_ == "parquet":
        yield from _parquet(path)
        return
    with _open(path) as stream:
        match format_:
            case "jsonl":
                yield from _jsonl(stream)
            case "json":
                yield from _json(path, stream)
            case "csv":
                yield from _csv(path, stream)


def _open(path: str) -> BinaryIO:
    if path == STDIN:
        # Closed by the caller like a file, without taking the real one away.
        return open(sys.stdin.fileno(), "rb", closefd=False)
    with named_errors(path):
        return Path(path).open("rb")


def _jsonl(stream: BinaryIO) -> Iterator[Record]:
    index = 0
    for number, line in enumerate(stream, 1):
        if line.isspace():
            continue
        yield _json_record(index, f"line {number}", line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line)
        index += 1


def _json_record(index: int, place: str, line: bytes) -> Record:
    try:
        value = json.loads(line.decode())
    except UnicodeDecodeError as error:
        return Record(
            index, place, None, f"is not UTF-8 (byte {error.start + 1})", line.decode(errors="surrogateescape")
        )
    except json.JSONDecodeError as error:
        return Record(index, place, None, f"is not JSON: {error.msg} at character {error.pos + 1}", line.decode())
    except (ValueError, RecursionError) as error:
        # A number of thousands of digits, or brackets nested thousands deep.
        return Record(index, place, None, f"is not JSON that can be read: {type(error).__name__}", line.decode())
    return _object_record(index, place, value)


def _object_record(index: int, place: str, value: object) -> Record:
    if isinstance(value, dict):
        return Record(index, place, value)
    return Record(index, place, None, f"is not an object but {type(value).__name__}", json.dumps(value))


def _json(path: str, stream: BinaryIO) -> Iterator[Record]:
    try:
        document = json.loads(stream.read().decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        hint = " (one object a line is --input-format jsonl)" if "Extra data" in str(error) else ""
        raise InputError(f"{path} is not JSON: {error}{hint}") from error
    rows = document.get("rows") if isinstance(document, dict) else document
    if not isinstance(rows, list):
        raise InputError(f'{path}: a JSON file is a list of rows, or an object with the list under "rows"')
    for index, value in enumerate(rows):
        yield _object_record(index, f"row {index + 1}", value)


def _csv(path: str, stream: BinaryIO) -> Iterator[Record]:
    # A cell may be a whole document; the module's own limit is 128 kB.
    csv.field_size_limit(sys.maxsize)
    # Bytes that are no UTF-8 pass as surrogates, so that only their row fails.
    with io.TextIOWrapper(stream, encoding="utf-8-sig", errors="surrogateescape", newline="") as text:
        reader = csv.reader(text, strict=True)
        try:
            header = next(reader, None)
        except csv.Error as error:
            raise InputError(f"{path}: the header line is not CSV: {error}") from error
        if header is None:
            return
        if repeated := {name for name in header if header.count(name) > 1}:
            raise InputError(f"{path}: the header names {', '.join(sorted(repeated))} twice")
        for index, (place, cells) in enumerate(_csv_lines(reader)):
            if isinstance(cells, csv.Error):
                yield Record(index, place, None, f"is not CSV: {cells}", f"csv {place}")
            else:
                yield _csv_record(index, place, header, cells)


def _csv_lines(reader: CsvReader) -> Iterator[tuple[str, list[str] | csv.Error]]:
    while True:
        place = f"line {reader.line_num + 1}"
        try:
            cells = next(reader, None)
        except csv.Error as error:
            yield place, error
            continue
        if cells is None:
            return
        if cells:
            yield place, cells


def _csv_record(index: int, place: str, header: list[str], cells: list[str]) -> Record:
    raw = json.dumps(cells)
    if len(cells) != len(header):
        return Record(index, place, None, f"has {len(cells)} cells, the header has {len(header)}", raw)
    try:
        "".join(cells).encode()
    except UnicodeEncodeError:
        return Record(index, place, None, "is not UTF-8", raw)
    values = [None if cell in _MISSING_CELLS else cell for cell in cells]
    return Record(index, place, dict(zip(header, values, strict=True)))


@contextlib.contextmanager
def _parquet_file(path: str) -> Iterator[ParquetFile]:
    if path == STDIN:
        raise InputError("Parquet cannot be read from standard input: give a file")
    try:
        from pyarrow import ArrowException, parquet  # noqa: PLC0415 - optional and slow to import
    except ImportError as error:
        raise InputError(f"{path}: reading Parquet needs pyarrow: pip install 'gradewire[parquet]'") from error
    try:
        with parquet.ParquetFile(path) as file:
            yield file
    except (OSError, ArrowException) as error:
        raise InputError(f"{path} cannot be read as Parquet: {error}") from error


def _parquet(path: str) -> Iterator[Record]:
    index = 0
    with _parquet_file(path) as file:
        for batch in file.iter_batches(batch_size=1024):
            for fields in batch.to_pylist():
                yield Record(index, f"row {index + 1}", fields)
                index += 1


def count_rows(path: str, format_: Format) -> int | None:
    """Number of rows; None for standard input, which is read once.

    Raises:
        InputError: The file is not there, or not of the format as a whole.
    """
    if path == STDIN:
        return None
    if format_ == "jsonl":
        with _open(path) as stream:
            return sum(not line.isspace() for line in stream)
    if format_ == "parquet":
        with _parquet_file(path) as file:
            return int(file.metadata.num_rows)
    return sum(1 for _ in read_records(path, format_))


def unpacked(cell: Any, *, brackets: str = "[") -> Any:
    """The value of a cell that holds JSON which begins with one of these brackets; any other cell as it is."""
    if not isinstance(cell, str) or not cell.lstrip().startswith(tuple(brackets)):
        return cell
    try:
        return json.loads(cell)
    except (ValueError, RecursionError):
        return cell


def printable(text: str) -> str:
    """A text of the file as a terminal can show it: UTF-8 cannot hold lone surrogates."""
    return text.encode(errors="replace").decode()
