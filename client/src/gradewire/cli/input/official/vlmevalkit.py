"""Tables of predictions of VLMEvalKit: workbooks as it writes them by default, TSV or JSON by PRED_FORMAT."""

import string
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from gradewire._input.cells import is_of_numbers, unpacked_list
from gradewire._input.values import is_missing
from gradewire.cli.input.delimited import csv_records
from gradewire.cli.input.json_records import json_records
from gradewire.cli.input.official.choices import option_named, option_place
from gradewire.cli.input.official.samples import checked, listed, numbered, references_of
from gradewire.cli.input.official.workbook import workbook_records
from gradewire.cli.input.opening import GZIP, opened
from gradewire.cli.input.record import Record
from gradewire.cli.problems import InputError

TYPE_COLUMNS: Final = ("task", "category", "l2-category", "split")
_FAILED: Final = "Failed to obtain answer"
"""VLMEvalKit writes this in the place of an answer that it did not get."""


def vlmevalkit_records(path: str) -> Iterator[Record]:
    """A row for each row of the table.

    Raises:
        InputError: The file is not there, of another format, or no table of predictions.
    """
    yield from numbered(_row(record, _task(path)) for record in checked(path, "vlmevalkit", _table(path), _lack))


def _task(path: str) -> str:
    """MODEL_DATASET, as VLMEvalKit names the file; where the one ends and the other begins, the name does not say."""
    name = Path(path).name
    return Path(name[: -len(GZIP)] if name.lower().endswith(GZIP) else name).stem


def _table(path: str) -> Iterator[Record]:
    name = path.lower().removesuffix(GZIP)
    if name.endswith(".xlsx"):
        yield from workbook_records(path)
        return
    if not name.endswith((".tsv", ".json")):
        raise InputError(
            f"{path}: VLMEvalKit's predictions are .xlsx, .tsv or .json (environment variable PRED_FORMAT): give such "
            "a file"
        )
    with opened(path) as stream:
        yield from json_records(path, stream) if name.endswith(".json") else csv_records(path, stream, (), "\t")


def _lack(fields: Mapping[str, Any]) -> str:
    if {"index", "prediction"} <= fields.keys():
        return ""
    return f"has no index with a prediction (it has: {listed(fields)})"


def _row(record: Record, task: str) -> Record:
    if record.fields is None:
        return record
    fields = {name: None if is_missing(value) else value for name, value in record.fields.items()}
    prediction, index = fields["prediction"], fields["index"]
    identifier = f"{task}/{record.index if index is None else index}"
    if isinstance(prediction, str) and _FAILED in prediction:
        problem = f"has no answer: {prediction[:200]}"
        return Record(0, record.place, None, problem, repr(record.fields), id=identifier)
    options = _options(fields)
    row = {
        "id": identifier,
        "task": task,
        **{name: fields.get(name) or "" for name in TYPE_COLUMNS[1:]},
        "question": fields.get("question"),
        "prediction": option_named(prediction, options) if isinstance(prediction, str) else prediction,
        "raw_response": prediction,
        **({"choices": options} if options else {}),
        **{f"vlmevalkit_{name}": value for name, value in fields.items()},
    }
    references = _references(fields, options)
    if references is not None:
        row["references"] = references
    return Record(0, record.place, row)


def _options(fields: Mapping[str, Any]) -> list[str]:
    """Texts of the columns A, B, C …, as far as a row has them."""
    options: list[str] = []
    for letter in string.ascii_uppercase:
        value = fields.get(letter)
        if value is None or value == "":
            break
        options.append(str(value))
    return options if len(options) > 1 else []


def _references(fields: Mapping[str, Any], options: list[str]) -> Any:
    answer = fields.get("answer")
    if answer is None:
        answer = references_of(fields)
    if not isinstance(answer, str):
        return answer
    place = option_place(answer, options)
    if place is not None:
        return [options[place]]
    named = unpacked_list(answer)
    return named if named and not is_of_numbers(named) else answer
