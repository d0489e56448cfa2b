"""Turns a record of any file into a row: which column is which field."""

import hashlib
import itertools
import json
import math
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gradewire.cli.input.labels import HumanLabel, is_no_label, read_labels
from gradewire.cli.input.records import Format, Record, printable, unpacked
from gradewire.cli.problems import InputError

# Names under which a field is found, the first that a row has wins.
ALIASES: dict[str, tuple[str, ...]] = {
    "id": ("id",),
    "question": ("question",),
    "references": ("references", "reference", "answers", "answer", "golden_answer"),
    "prediction": ("prediction", "pred", "response", "candidate"),
    "synthetic_answers": ("synthetic_answers", "syn_ans"),
    "caption": ("caption",),
    "group": ("group", "dataset"),
    "label": ("label", "human_score"),
    "labels": ("labels", "annotations"),
    "flags": ("flags",),
    "question_id": ("question_id",),
    "image": ("image_id", "image"),
    "dataset": ("dataset", "group"),
    "model": ("model",),
}
ITEM_FIELDS = ("question", "references", "prediction", "synthetic_answers", "caption", "group")
# Rows looked at before the first is scored: columns are checked, and the synthetic answers found, on these.
PEEK_ROWS = 64


@dataclass(frozen=True, slots=True)
class Row:
    """A row, ready to be sent.

    Attributes:
        index: Row number in the file, from 0.
        place: As in `Record`.
        id: The file's id, else the row number.
        item: What `Client.score` takes; None for a row that cannot be read.
        problem: Why it cannot be read, else "".
        digest: 32 hex digits over everything that a score or an output row depends on.
        human: What people said of it.
        dataset: Data set; "" without.
        model: Model under test; "" without.
        group: Any further label to tell rows apart by; "" without.
        flags: What is said against using the row, for instance that its answer changes over time.
        question_key: Alike in rows of a data set that answer the same question: 32 hex digits over its id, else over
            image and question, else over question and references; "" without any of these but references.
        picture: What the question is about, as the row names it: a path, a URL, a data URI, an id; "" without.
    """

    index: int
    place: str
    id: str
    item: Mapping[str, Any] | None
    problem: str
    digest: str
    human: HumanLabel = field(default_factory=HumanLabel)
    dataset: str = ""
    model: str = ""
    group: str = ""
    flags: tuple[str, ...] = ()
    question_key: str = ""
    picture: str = ""


@dataclass(frozen=True, slots=True)
class RowOptions:
    """What the options say of the file.

    Attributes:
        columns: Column of a field, from --map; the field has no other names then. That of `labels` may name several
            columns, one per annotator, separated by commas.
        where: Allowed values by column, from --where; other rows are skipped.
        needed: Fields without which the file makes no sense.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    where: Mapping[str, frozenset[str]] = field(default_factory=dict)
    needed: Sequence[str] = ("references", "prediction")

    def names(self, name: str) -> tuple[str, ...]:
        """Columns in which a field may stand."""
        return (self.columns[name],) if name in self.columns else ALIASES[name]

    def annotator_columns(self, present: Container[str]) -> tuple[str, ...]:
        """Columns with one annotator's labels each; empty where --map names no such, or one column with lists."""
        mapped = self.columns.get("labels", "")
        return tuple(mapped.split(",")) if "," in mapped and mapped not in present else ()


@dataclass(frozen=True, slots=True)
class RowSource:
    """Rows of a checked file, lazily, and whether all of the first ones carry synthetic answers."""

    rows: Iterator[Row]
    has_synthetic: bool


def open_rows(path: str, format_: Format, records: Iterable[Record], options: RowOptions) -> RowSource:
    """Checks the columns on the first rows, and gives all rows.

    Raises:
        InputError: A column that is needed, or named by an option, is in none of the first rows; names those there are.
    """
    remaining = iter(records)
    peeked = list(itertools.islice(remaining, PEEK_ROWS))
    readable = [record.fields for record in peeked if record.fields is not None]
    present = dict.fromkeys(column for fields in readable for column in fields)
    if readable:
        _check_columns(path, present, options)
    rows = _rows(itertools.chain(peeked, remaining), format_, options)
    synthetic = [
        bool(_value(fields, options.names("synthetic_answers")))
        for fields in readable
        if is_wanted(fields, options.where)
    ]
    return RowSource(rows, bool(synthetic) and all(synthetic))


def _check_columns(path: str, present: Iterable[str], options: RowOptions) -> None:
    columns = list(present)
    listed = ", ".join(map(printable, columns)) or "none"
    annotators = options.annotator_columns(columns)
    mapped = [column for name, column in options.columns.items() if not (annotators and name == "labels")]
    for column in (*mapped, *annotators, *options.where):
        if column not in columns:
            raise InputError(f"{path}: there is no column {column!r}; the columns are: {listed}")
    for name in options.needed:
        names = options.names(name) + (options.names("labels") if name == "label" else ())
        if not set(names) & set(columns) and not (name == "label" and annotators):
            raise InputError(
                f"{path}: no column for {name} (looked for {', '.join(names)}); "
                f"the columns are: {listed}. Say which it is with --map {name}=COLUMN"
            )


def is_wanted(fields: Mapping[str, Any], where: Mapping[str, Container[str]]) -> bool:
    """Whether a row has, in each of these columns, one of the values that are allowed there."""
    return all(str(fields.get(column)) in allowed for column, allowed in where.items())


def _rows(records: Iterable[Record], format_: Format, options: RowOptions) -> Iterator[Row]:
    for record in records:
        if record.fields is None:
            yield _unreadable(record)
        elif is_wanted(record.fields, options.where):
            yield _row(record, record.fields, format_, options)


def _unreadable(record: Record) -> Row:
    return Row(
        index=record.index,
        place=record.place,
        id=str(record.index),
        item=None,
        problem=f"{record.place} {record.problem}",
        digest=_digest([record.problem, record.raw]),
    )


def _row(record: Record, fields: Mapping[str, Any], format_: Format, options: RowOptions) -> Row:
    def text(name: str) -> str:
        value = _value(fields, options.names(name))
        return "" if value is None else str(value)

    values: dict[str, Any] = {}
    for name in ITEM_FIELDS:
        value = _value(fields, options.names(name))
        if format_ == "csv" and name in {"references", "synthetic_answers"}:
            value = _cell_list(value)
        if value is not None:
            values[name] = _listed(value) if name in {"references", "synthetic_answers"} else _stated(value)
    identifier = text("id") or str(record.index)
    missing = [name for name in options.needed if name in ITEM_FIELDS and values.get(name) is None]
    problem = ""
    if missing:
        problem = _lack(record.place, fields, missing[0], options.names(missing[0]))
    annotators = options.annotator_columns(fields)
    listed = [fields.get(column) for column in annotators] or _label(fields, options.names("labels"))
    return Row(
        index=record.index,
        place=record.place,
        id=identifier,
        item=None if problem else {"id": identifier, **values},
        problem=problem,
        digest=_digest([identifier, values]),
        human=read_labels(_label(fields, options.names("label")), listed),
        dataset=text("dataset"),
        model=text("model"),
        group=text("group"),
        flags=_flags(_value(fields, options.names("flags"))),
        question_key=_question_key(text("question_id"), text("image"), values),
        picture=_picture(_value(fields, reversed(options.names("image")))),
    )


def _picture(value: Any) -> str:
    # An image has the picture or its place, an image_id often a number only. A data set's image may be its parts.
    named = value.get("path") if isinstance(value, Mapping) else value
    return str(named) if isinstance(named, str | int) else ""


def _question_key(identifier: str, image: str, values: Mapping[str, Any]) -> str:
    if identifier.strip():
        return _digest(["id", identifier])
    question = str(values.get("question") or "").strip()
    if image.strip():
        return _digest(["image", image, question])
    # The same words about another image: a file that names no images tells them apart by what is right there.
    references = values.get("references")
    listed = sorted(map(str, references)) if isinstance(references, list) else [str(references)]
    return _digest(["question", question, listed]) if question else ""


def _value(fields: Mapping[str, Any], names: Iterable[str]) -> Any:
    return next((fields[name] for name in names if name in fields and not _is_missing(fields[name])), None)


def _label(fields: Mapping[str, Any], names: Iterable[str]) -> Any:
    # An infinite label stands there and cannot be read, which is told.
    return next((fields[name] for name in names if name in fields and not is_no_label(fields[name])), None)


def _is_missing(value: Any) -> bool:
    # Table libraries write NaN where a value is missing: as text it would be the answer "nan", with a score.
    return value is None or (isinstance(value, float) and not math.isfinite(value))


def _lack(place: str, fields: Mapping[str, Any], name: str, names: Iterable[str]) -> str:
    """What a row lacks, in words."""
    if column := next((column for column in names if column in fields), None):
        return f"{place} has no {name}: its {printable(column)} is null or not a finite number"
    there = ", ".join(map(printable, fields))
    return f"{place} has no {name} (its columns: {there or 'none'})"


def _cell_list(cell: Any) -> Any:
    """A CSV cell that should hold a list: a JSON list, or one text; an empty cell holds nothing."""
    value = unpacked(cell)
    if isinstance(value, str):
        return [value] if value else []
    return value


def _listed(value: Any) -> Any:
    return [_stated(entry) for entry in value] if isinstance(value, list) else [_stated(value)]


def _stated(value: Any) -> Any:
    if _is_missing(value):
        return None
    # JSON writes 1989 where people mean "1989"; everything else that is no string is left for the client to name.
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def _flags(value: Any) -> tuple[str, ...]:
    """Flags of a row: a list, or words separated by commas."""
    listed = _cell_list(value) if value is not None else []
    flags = listed if isinstance(listed, list) else [listed]
    return tuple(part.strip() for flag in flags for part in str(flag).split(",") if part.strip())


def _digest(content: object) -> str:
    # ASCII, so that lone surrogates have a digest too.
    encoded = json.dumps(content, sort_keys=True, ensure_ascii=True, default=repr).encode()
    return hashlib.blake2b(encoded, digest_size=16).hexdigest()
