"""Read files row by row: JSONL, JSON, CSV and its variants, Parquet, Arrow.

An unreadable row becomes a record with a problem and never ends the run.
"""

from __future__ import annotations

import contextlib
import csv
import io
import itertools
import json
import re
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Literal, get_args

from gradewire._columns import ALIASES, spelled
from gradewire_cli.problems import InputError, redacted_url
from gradewire_cli.rows.files import GZIP, STDIN, is_url, open_bytes, open_url
from gradewire_cli.rows.paths import ABSENT, DOT, value_at

if TYPE_CHECKING:
    from _csv import Reader as CsvReader
    from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence

    from pyarrow.parquet import ParquetFile

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
"""Formats with only text cells: lists, numbers and missing values are all strings."""
_KNOWN_COLUMNS: Final = frozenset(spelled(alias) for names in ALIASES.values() for alias in names)
_MARK = b"\xef\xbb\xbf"

DELIMITERS: Final = (",", ";", "\t", "|")
_EXCEL_DELIMITER: Final = re.compile(r'\A"?sep=(.)"?\s*\Z')
_MISSING: Final = frozenset({"nan", "NaN", "<NA>", "NaT", "NULL", "\\N", "#N/A"})
"""Words for missing values from table libraries, databases and spreadsheets. These words are never answers."""
_INVISIBLE: Final = "\ufeff\u200b\u2060"

_BATCH_ROWS = 1024
_SHOWN_ID_CHARACTERS = 60
_FILE_MARK = b"ARROW1"


@dataclass(frozen=True, slots=True)
class Record:
    """A row with the values that the file contains.

    Attributes:
        index: Row index from 0 over all files. Blank lines in JSONL and CSV do not count.
        position: Readable position: "line 7", or "row 7" if the format has no lines.
        fields: Values by column, or None if the row cannot be read.
        problem: Reason why the row cannot be read, or "".
        raw: An unreadable row's content, with lone surrogates for bytes that are not UTF-8. "" if the row can be read.
        file: The file's display name if several files are read, otherwise "".
        id: An unreadable row's ID, or "" if unknown.
        nested: Names in `fields` that are no columns of the file, but paths to values inside them.
    """

    index: int
    position: str
    fields: Mapping[str, Any] | None
    problem: str = ""
    raw: str = ""
    file: str = ""
    id: str = ""
    nested: Sequence[str] = ()


def shown_id(identifier: str) -> str:
    """Return a row's id for a message, with escapes if a terminal could not show it, and cut if it is long."""
    text = identifier if identifier.isprintable() else ascii(identifier)
    return text if len(text) <= _SHOWN_ID_CHARACTERS else f"{text[:_SHOWN_ID_CHARACTERS]}…"


def printable(text: str) -> str:
    """Replace lone surrogates, which a terminal cannot show."""
    return text.encode(errors="replace").decode()


def jsonl_records(stream: BinaryIO) -> Iterator[Record]:
    """Yield the rows of a file with one JSON object per line. Other lines become rows with a problem."""
    lines = ((number, line) for number, line in enumerate(stream, 1) if not line.isspace())
    for index, (number, line) in enumerate(lines):
        yield _json_record(index, f"line {number}", line.removeprefix(_MARK) if number == 1 else line)


def json_records(path: str, stream: BinaryIO) -> Iterator[Record]:
    """Yield the rows in a JSON list, or in an object with the list under "rows" or "data".

    Raises:
        InputError: The file is not JSON or has no such list.
    """
    try:
        document = json.loads(stream.read().decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        hint = " (use --input-format jsonl for one object per line)" if "Extra data" in str(error) else ""
        raise InputError(f"{path} is not JSON: {error}{hint}") from error
    rows = _rows_in(document) if isinstance(document, dict) else document
    if not isinstance(rows, list):
        raise InputError(
            f'{path}: a JSON file must contain a list of rows, or an object with the list under "rows" or "data". In '
            'pandas, use df.to_json(…, orient="records")'
        )
    for index, value in enumerate(rows):
        yield _object_record(index, f"row {index + 1}", value)


def _rows_in(document: dict[str, Any]) -> Any:
    rows = next((document[key] for key in ("rows", "data") if key in document), None)
    columns = document.get("columns")
    if isinstance(columns, list) and isinstance(rows, list):  # pandas with orient="split"
        return [dict(zip(columns, row, strict=False)) if isinstance(row, list) else row for row in rows]
    return rows


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
        # The line contains a number with thousands of digits, or thousands of nested brackets.
        return Record(index, place, None, f"is unreadable JSON: {type(error).__name__}", line.decode())
    return _object_record(index, place, value)


def is_output(row: object) -> bool:
    """Return True if a JSON value looks like a row of an output of `gradewire score`."""
    # The column "id" is not among these, because many files contain it.
    marks = {"index": int, "scores": dict, "digest": str}
    return isinstance(row, dict) and all(isinstance(row.get(name), kind) for name, kind in marks.items())


def _object_record(index: int, place: str, value: object) -> Record:
    if isinstance(value, dict):
        kept = value.get("input")
        # Outputs that kept their columns can be read like the files that they were made from.
        return Record(index, place, {**value, **kept} if isinstance(kept, dict) and is_output(value) else value)
    return Record(index, place, None, f"must be an object, not {type(value).__name__}", json.dumps(value))


def csv_records(path: str, stream: BinaryIO, known: Container[str], delimiter: str = "") -> Iterator[Record]:
    """Yield the rows of a CSV file with a header line.

    Raises:
        InputError: The header is unreadable or repeats a column.
    """
    # The csv module's default limit of 128 kB is too small for a document.
    csv.field_size_limit(sys.maxsize)
    # Only rows with bytes that are not UTF-8 must fail, so these bytes become surrogates.
    with io.TextIOWrapper(stream, encoding="utf-8-sig", errors="surrogateescape", newline="") as text:
        first, skipped = text.readline(), 0
        if named := _EXCEL_DELIMITER.match(first):
            delimiter = delimiter or named[1]
            first, skipped = text.readline(), 1
        if not first:
            return
        reader = csv.reader(
            itertools.chain([first], text), strict=True, delimiter=delimiter or _delimiter(first, known)
        )
        header = _header(path, reader)
        for index, (place, cells) in enumerate(_csv_lines(reader, skipped)):
            if isinstance(cells, csv.Error):
                yield Record(index, place, None, f"is not CSV: {cells}", f"csv {place}")
            else:
                yield _csv_record(index, place, header, cells)


def _header(path: str, reader: CsvReader) -> list[str]:
    try:
        header = [_column(name, place) for place, name in enumerate(next(reader), 1)]
    except csv.Error as error:
        raise InputError(f"{path}: the header line is not CSV: {error}") from error
    if repeated := {name for name in header if header.count(name) > 1}:
        raise InputError(f"{path}: the header repeats {', '.join(sorted(repeated))}. Rename or remove one of them")
    return header


def _delimiter(header: str, known: Container[str]) -> str:
    def found(delimiter: str) -> tuple[int, int]:
        names = next(csv.reader([header], delimiter=delimiter), [])
        return sum(spelled(name) in known for name in names), len(names) * (delimiter != "|")

    # The comma is the default, because max returns the first of equal delimiters.
    return max(DELIMITERS, key=found)


def _column(name: str, place: int) -> str:
    # Table libraries write their index as a column without a name.
    return name.strip().strip(_INVISIBLE).strip() or f"column {place}"


def _csv_lines(reader: CsvReader, skipped: int) -> Iterator[tuple[str, list[str] | csv.Error]]:
    while True:
        place = f"line {reader.line_num + 1 + skipped}"
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
        return Record(index, place, None, f"has {len(cells)} cells, but the header has {len(header)}", raw)
    try:
        "".join(cells).encode()
    except UnicodeEncodeError:
        return Record(index, place, None, "is not UTF-8. Save the file as UTF-8, or use --encoding", raw)
    values = [None if cell.strip() in _MISSING else cell for cell in cells]
    return Record(index, place, dict(zip(header, values, strict=True)))


def parquet_records(path: str) -> Iterator[Record]:
    """Yield the rows of a Parquet file; raise InputError if the file is unreadable or pyarrow is missing."""
    with _parquet_file(path) as file:
        yield from _numbered(file.iter_batches(batch_size=_BATCH_ROWS))


def _numbered(batches: Iterator[Any]) -> Iterator[Record]:
    for index, fields in enumerate(itertools.chain.from_iterable(batch.to_pylist() for batch in batches)):
        yield Record(index, f"row {index + 1}", fields)


def parquet_rows(path: str) -> int:
    """Return a Parquet file's number of rows; raise InputError like `parquet_records`."""
    with _parquet_file(path) as file:
        return int(file.metadata.num_rows)


def arrow_records(path: str) -> Iterator[Record]:
    """Yield the rows of an Arrow file (Feather, or written by `datasets`), in file or stream format.

    Raises:
        InputError: The file is unreadable, or pyarrow is missing.
    """
    _refuse_stdin(path)
    with _readable(path, "Arrow"):
        from pyarrow import PythonFile, ipc, memory_map  # noqa: PLC0415 - optional

        with PythonFile(open_url(path), "r") if is_url(path) else memory_map(path) as source:
            yield from _numbered(_batches(source, ipc))


def _batches(source: Any, ipc: Any) -> Iterator[Any]:
    if source.read(len(_FILE_MARK)) == _FILE_MARK:
        file = ipc.open_file(source)
        yield from map(file.get_batch, range(file.num_record_batches))
    else:
        source.seek(0)
        yield from ipc.open_stream(source)


@contextlib.contextmanager
def _parquet_file(path: str) -> Iterator[ParquetFile]:
    _refuse_stdin(path)
    with _readable(path, "Parquet"):
        from pyarrow import parquet  # noqa: PLC0415 - optional

        with (
            open_url(path) if is_url(path) else contextlib.nullcontext(path) as source,
            parquet.ParquetFile(source) as file,
        ):
            yield file


def _refuse_stdin(path: str) -> None:
    if path == STDIN:
        raise InputError("Parquet and Arrow files cannot be read from standard input. Name the file")


@contextlib.contextmanager
def _readable(path: str, format_: str) -> Iterator[None]:
    try:
        import pyarrow as pa  # noqa: PLC0415 - optional
    except ImportError as error:
        raise InputError(f"{path}: {format_} needs pyarrow. Run: pip install 'gradewire[parquet]'") from error
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{path} cannot be read as {format_}: {error}") from error


@dataclass(frozen=True, slots=True)
class Reading:
    """Rules for reading files.

    Attributes:
        encoding: Encoding of text files. "" means UTF-8, or UTF-16 if the first bytes look like UTF-16.
        delimiter: CSV delimiter. "" means that the delimiter is detected in the header line.
        columns: Names in options, which help to recognize the header's delimiter, and may be paths (`with_paths`).
        read: Reader for another program's files, or None for plain rows.
    """

    format: Format | None = None
    encoding: str = ""
    delimiter: str = ""
    columns: Sequence[str] = ()
    read: Callable[[str], Iterator[Record]] | None = None


def format_of(path: str, chosen: Format | None) -> Format:
    """Return the chosen format, or the format of the path's suffix. Standard input is JSONL by default.

    Raises:
        InputError: The suffix is unknown, or belongs to a spreadsheet.
    """
    if chosen is not None:
        return chosen
    if path == STDIN:
        return "jsonl"
    name = path.lower().removesuffix(GZIP)
    suffix = Path(name).suffix
    if suffix in _TABLE_SUFFIXES:
        raise InputError(
            f"{path}: workbooks are read only from VLMEvalKit (--from vlmevalkit). Save the sheet as CSV UTF-8 and "
            "use that file"
        )
    if suffix == ".eval":
        raise InputError(f"{path} looks like a log from inspect. Use --from inspect")
    if (found := _SUFFIXES.get(suffix)) is None:
        if not is_url(path) and Path(path).is_dir():
            raise InputError(f"{path} is a folder. Name the files in it")
        shown = Path(redacted_url(name)).suffix or "no suffix"
        raise InputError(f"{path}: unknown format ({shown}). Use --input-format")
    if name != path.lower() and found in {"parquet", "arrow"}:
        raise InputError(f"{path}: unpack the file (gzip -d), because {found} is already compressed")
    return found


def read_file(path: str, reading: Reading) -> Iterator[Record]:
    """Yield a file's rows; raise InputError if the file is missing, unreadable, in another format, or has no rows."""
    is_empty = True
    for record in with_paths(_read(path, reading), reading.columns):
        is_empty = False
        yield record
    if is_empty:
        raise InputError(f"{'standard input' if path == STDIN else path} has no rows")


def _read(path: str, reading: Reading) -> Iterator[Record]:
    format_ = format_of(path, reading.format)
    whole = reading.read or {"parquet": parquet_records, "arrow": arrow_records}.get(format_)
    if whole is not None:
        yield from whole(path)
        return
    with open_bytes(path, reading.encoding) as stream:
        if format_ == "jsonl":
            yield from jsonl_records(stream)
        elif format_ == "json":
            yield from json_records(path, stream)
        else:
            known = _KNOWN_COLUMNS | {spelled(column) for column in reading.columns}
            delimiter = reading.delimiter or ("\t" if format_ == "tsv" else "")
            yield from csv_records(path, stream, known, delimiter)


def with_paths(records: Iterable[Record], columns: Sequence[str]) -> Iterator[Record]:
    """Yield the records with an additional field for each of these columns that is a path into the record's fields.

    A column of the file with the whole path as its name is left unchanged.
    """
    paths = [column for column in dict.fromkeys(columns) if DOT in column]
    for record in records:
        fields = record.fields
        if fields is None or not paths:
            yield record
            continue
        found = {path: value_at(fields, path) for path in paths if path not in fields}
        nested = {path: value for path, value in found.items() if value is not ABSENT}
        yield replace(record, fields={**fields, **nested}, nested=tuple(nested)) if nested else record


def count_rows(path: str, reading: Reading) -> int:
    """Return the number of rows in a file, which must not be standard input."""
    format_ = format_of(path, reading.format)
    if format_ == "jsonl":
        with open_bytes(path, reading.encoding) as stream:
            return sum(not line.isspace() for line in stream)
    return parquet_rows(path) if format_ == "parquet" else sum(1 for _ in read_file(path, reading))
