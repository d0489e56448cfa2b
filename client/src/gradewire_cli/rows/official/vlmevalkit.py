"""Read VLMEvalKit's prediction tables: workbooks by default, TSV or JSON if PRED_FORMAT was set."""

import itertools
import re
import string
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from gradewire._rows import is_missing
from gradewire_cli.problems import InputError
from gradewire_cli.rows.files import GZIP, open_bytes
from gradewire_cli.rows.formats import Record, csv_records, json_records, printable
from gradewire_cli.rows.official.harness import (
    OfficialFiles,
    SampleLog,
    listed,
    mapping,
    named_texts,
    open_zip,
    option_named,
    option_position,
    option_shown,
    references_of,
    row_id,
    without_answer,
)

MAX_UNPACKED_BYTES: Final = 1 << 30
_MOST_ROWS: Final = 1 << 20
_MOST_COLUMNS: Final = 1 << 14
"""Excel's limit on columns in a sheet. A cell may claim any position, and openpyxl fills the gap before the cell."""
_NAME: Final = re.compile(r"\A(.+?)(?:\.[^.]+)?(?:\.gz)?\Z", re.IGNORECASE)
TYPE_COLUMNS: Final = ("task", "category", "l2-category", "split")
_MISSING_ANSWER: Final = "Failed to obtain answer"


def workbook_records(path: str) -> Iterator[Record]:
    """Yield the non-empty rows below the first sheet's header. Formulas stay text.

    Raises:
        InputError: openpyxl is missing, or the file is missing, is not a workbook, is too large, or repeats a column.
    """
    try:
        import openpyxl  # noqa: PLC0415 - optional
    except ImportError as error:
        raise InputError(
            f"{path}: workbooks need openpyxl. Run: pip install 'gradewire[xlsx]'; or have VLMEvalKit write TSV with "
            "PRED_FORMAT=tsv"
        ) from error
    open_zip(path, kind="workbook", most_bytes=MAX_UNPACKED_BYTES, way_out="Save the sheet as TSV").close()
    try:
        book = openpyxl.load_workbook(path, read_only=True)
        try:
            yield from _records(path, book.worksheets[0])
        finally:
            book.close()
    except InputError:
        raise
    except Exception as error:  # openpyxl raises any error for a damaged workbook
        raise InputError(f"{path} cannot be read as a workbook: {type(error).__name__}: {error}") from error


def _records(path: str, sheet: Any) -> Iterator[Record]:
    # Without these bounds, openpyxl would drop rows outside the sheet's claimed size.
    first = sheet.iter_rows(min_row=1, max_row=1, max_col=_MOST_COLUMNS, values_only=True)
    header = ["" if name is None else str(name) for name in next(first, ())]
    while header and not header[-1]:
        header.pop()
    if not header:
        return
    if repeated := sorted({name for name in header if name and header.count(name) > 1}):
        raise InputError(f"{path}: the header names {', '.join(map(printable, repeated))} twice. Rename or remove one")
    lines = sheet.iter_rows(min_row=2, max_row=_MOST_ROWS, max_col=len(header), values_only=True)
    filled = ((number, line) for number, line in enumerate(lines, 2) if any(cell is not None for cell in line))
    for index, (number, line) in enumerate(filled):
        yield Record(index, f"row {number}", _fields(header, line))


def _fields(header: Sequence[str], line: Sequence[Any]) -> dict[str, Any]:
    return {name: value for name, value in zip(header, line, strict=False) if name}


def _table(path: str) -> Iterator[Record]:
    name = path.lower().removesuffix(GZIP)
    if name.endswith(".xlsx"):
        yield from workbook_records(path)
        return
    if not name.endswith((".tsv", ".json")):
        raise InputError(
            f"{path}: VLMEvalKit's predictions are .xlsx, .tsv or .json (environment variable PRED_FORMAT). Use such "
            "a file"
        )
    with open_bytes(path) as stream:
        yield from json_records(path, stream) if name.endswith(".json") else csv_records(path, stream, (), "\t")


def _lack(fields: Mapping[str, Any]) -> str:
    if {"index", "prediction"} <= fields.keys():
        return ""
    return f"lacks index or prediction (its fields: {listed(fields)})"


def _rows(record: Record, task: str) -> Iterator[Record]:
    fields = {name: None if is_missing(value) else value for name, value in mapping(record.fields).items()}
    prediction, index = fields["prediction"], fields["index"]
    identifier = row_id(task, record.index if index is None else index)
    if isinstance(prediction, str) and _MISSING_ANSWER in prediction:
        yield without_answer(record, identifier, f"has no answer: {prediction[:200]}")
        return
    options = _options(fields)
    references = _references(fields, options)
    row = {
        "id": identifier,
        "task": task,
        **{name: fields.get(name) or "" for name in TYPE_COLUMNS[1:]},
        "question": fields.get("question"),
        "prediction": option_named(prediction, options),
        "raw_response": prediction,
        **({"choices": options} if options else {}),
        **{f"vlmevalkit_{name}": value for name, value in fields.items()},
        **({} if references is None else {"references": references}),
    }
    yield Record(0, record.position, row)


def _options(fields: Mapping[str, Any]) -> list[str]:
    given = (fields.get(letter) for letter in string.ascii_uppercase)
    options = list(map(str, itertools.takewhile(lambda value: value not in (None, ""), given)))
    return options if len(options) > 1 else []


def _references(fields: Mapping[str, Any], options: list[str]) -> Any:
    answer = fields.get("answer")
    if answer is None:
        answer = references_of(fields)
    place = option_position(answer, options) if isinstance(answer, str) else None
    if place is not None:
        return [option_shown(place, options)]
    return named_texts(answer) or answer


LOG: Final = SampleLog("vlmevalkit", _NAME, _lack, _rows, samples=_table)
FILES: Final = OfficialFiles("vlmevalkit", LOG.read, TYPE_COLUMNS)
