"""Rows of CSV and its kin: delimiters by the header, and what spreadsheets and table libraries add."""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
import sys
from typing import TYPE_CHECKING, BinaryIO, Final

from gradewire.cli.input.record import Record
from gradewire.cli.problems import InputError

if TYPE_CHECKING:
    from _csv import Reader as CsvReader
    from collections.abc import Container, Iterator

DELIMITERS: Final = (",", ";", "\t", "|")
_EXCEL_DELIMITER: Final = re.compile(r'\A"?sep=(.)"?\s*\Z')
"""The first line of a file that a spreadsheet is told its delimiter by."""
_MISSING: Final = frozenset({"nan", "NaN", "<NA>", "NaT", "NULL", "\\N", "#N/A"})
"""What table libraries, databases and spreadsheets write where there is nothing; nobody answers so."""
_INVISIBLE: Final = "\ufeff\u200b\u2060"


def csv_records(path: str, stream: BinaryIO, known: Container[str], delimiter: str = "") -> Iterator[Record]:
    """Rows of a file with a header line.

    Args:
        path: For messages.
        stream: Bytes that should be UTF-8; a row that is not has a problem.
        known: Names of columns that help to tell the delimiter.
        delimiter: "": the one that finds most of the known columns in the header.

    Raises:
        InputError: The header cannot be read, or names a column twice.
    """
    # A cell may be a whole document; the module's own limit is 128 kB.
    csv.field_size_limit(sys.maxsize)
    # Bytes that are no UTF-8 pass as surrogates, so that only their row fails.
    with io.TextIOWrapper(stream, encoding="utf-8-sig", errors="surrogateescape", newline="") as text:
        first, skipped = text.readline(), 0
        if told := _EXCEL_DELIMITER.match(first):
            delimiter = delimiter or told[1]
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
        raise InputError(f"{path}: the header names {', '.join(sorted(repeated))} twice: rename one, or leave it out")
    return header


def _delimiter(header: str, known: Container[str]) -> str:
    def found(delimiter: str) -> tuple[int, int]:
        names = next(csv.reader([header], delimiter=delimiter), [])
        return sum(name.strip().casefold() in known for name in names), len(names) * (delimiter != "|")

    # The first of the best: a comma where nothing speaks for another.
    return max(DELIMITERS, key=found)


def _column(name: str, place: int) -> str:
    # The index of a table has no name.
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
        return Record(index, place, None, f"has {len(cells)} cells, the header has {len(header)}", raw)
    try:
        "".join(cells).encode()
    except UnicodeEncodeError:
        return Record(index, place, None, "is not UTF-8: save the file as UTF-8, or give its --encoding", raw)
    values = [None if cell.strip() in _MISSING else cell for cell in cells]
    return Record(index, place, dict(zip(header, values, strict=True)))
