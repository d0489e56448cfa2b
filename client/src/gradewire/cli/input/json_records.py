"""Rows of JSON: an object a line, or a list of objects."""

import json
from collections.abc import Iterator
from typing import Any, BinaryIO

from gradewire.cli.input.record import Record
from gradewire.cli.problems import InputError

_MARK = b"\xef\xbb\xbf"


def jsonl_records(stream: BinaryIO) -> Iterator[Record]:
    """Rows of a file with an object a line; a line that is none has a problem."""
    index = 0
    for number, line in enumerate(stream, 1):
        if line.isspace():
            continue
        yield _json_record(index, f"line {number}", line.removeprefix(_MARK) if number == 1 else line)
        index += 1


def json_records(path: str, stream: BinaryIO) -> Iterator[Record]:
    """Rows of a file that is one list, or an object with the list under "rows" or "data".

    Raises:
        InputError: It is no such file.
    """
    try:
        document = json.loads(stream.read().decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        hint = " (one object a line is --input-format jsonl)" if "Extra data" in str(error) else ""
        raise InputError(f"{path} is not JSON: {error}{hint}") from error
    rows = _rows_in(document) if isinstance(document, dict) else document
    if not isinstance(rows, list):
        raise InputError(
            f'{path}: a JSON file is a list of rows, or an object with the list under "rows" or "data"; pandas writes '
            'one by df.to_json(…, orient="records")'
        )
    for index, value in enumerate(rows):
        yield _object_record(index, f"row {index + 1}", value)


def _rows_in(document: dict[str, Any]) -> Any:
    rows = next((document[key] for key in ("rows", "data") if key in document), None)
    columns = document.get("columns")
    if isinstance(columns, list) and isinstance(rows, list):  # as pandas writes it by orient="split"
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
        # A number of thousands of digits, or brackets nested thousands deep.
        return Record(index, place, None, f"is not JSON that can be read: {type(error).__name__}", line.decode())
    return _object_record(index, place, value)


def _object_record(index: int, place: str, value: object) -> Record:
    if isinstance(value, dict):
        return Record(index, place, value)
    return Record(index, place, None, f"is not an object but {type(value).__name__}", json.dumps(value))
