"""Rows of the first sheet of a workbook (.xlsx); openpyxl is imported when one is read."""

import zipfile
from collections.abc import Iterator, Sequence
from typing import Any, Final

from gradewire.cli.input.record import Record, printable
from gradewire.cli.problems import InputError, named_errors

MAX_UNPACKED_BYTES: Final = 1 << 30
"""A workbook is a zip archive: what would unpack to more is refused before it is."""
_MOST_ROWS: Final = 1 << 20
_MOST_COLUMNS: Final = 1 << 14
"""Of a sheet, as Excel has it. A cell may say that it stands anywhere, and openpyxl fills up what lies before it."""


def workbook_records(path: str) -> Iterator[Record]:
    """Rows under the header of the first sheet, without empty ones; formulas are the text that was typed.

    Raises:
        InputError: It is not there, no workbook, too large, names a column twice, or openpyxl is missing.
    """
    try:
        import openpyxl  # noqa: PLC0415 - optional and slow to import
    except ImportError as error:
        raise InputError(
            f"{path}: reading workbooks needs openpyxl: pip install 'gradewire[xlsx]'; or have VLMEvalKit write TSV by "
            "PRED_FORMAT=tsv"
        ) from error
    _check_size(path)
    try:
        book = openpyxl.load_workbook(path, read_only=True)
        try:
            yield from _records(path, book.worksheets[0])
        finally:
            book.close()
    except InputError:
        raise
    except Exception as error:  # of a damaged workbook openpyxl raises whatever its parts do
        raise InputError(f"{path} cannot be read as a workbook: {type(error).__name__}: {error}") from error


def _records(path: str, sheet: Any) -> Iterator[Record]:
    # By bounds of ours: what a sheet says of its own size need not be true, and rows beyond it would be left out.
    first = sheet.iter_rows(min_row=1, max_row=1, max_col=_MOST_COLUMNS, values_only=True)
    header = ["" if name is None else str(name) for name in next(first, ())]
    while header and not header[-1]:
        header.pop()
    if not header:
        return
    if repeated := sorted({name for name in header if name and header.count(name) > 1}):
        raise InputError(f"{path}: the header names {', '.join(map(printable, repeated))} twice: leave one out")
    lines = sheet.iter_rows(min_row=2, max_row=_MOST_ROWS, max_col=len(header), values_only=True)
    filled = ((number, line) for number, line in enumerate(lines, 2) if any(cell is not None for cell in line))
    for index, (number, line) in enumerate(filled):
        yield Record(index, f"row {number}", _fields(header, line))


def _check_size(path: str) -> None:
    with named_errors(path):
        try:
            with zipfile.ZipFile(path) as archive:
                claimed = sum(member.file_size for member in archive.infolist())
        except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
            raise InputError(f"{path} is no workbook: {error}") from error
    if claimed > MAX_UNPACKED_BYTES:
        raise InputError(
            f"{path} would unpack to {claimed >> 20} MiB, and workbooks up to {MAX_UNPACKED_BYTES >> 20} MiB are read: "
            "give it as TSV"
        )


def _fields(header: Sequence[str], line: Sequence[Any]) -> dict[str, Any]:
    """Cells by column; without those of columns that have no name."""
    return {name: value for name, value in zip(header, line, strict=False) if name}
