"""Make rows from a file's records, after checking the first records' columns and labels."""

import hashlib
import itertools
import json
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gradewire._columns import AmbiguousColumnsError
from gradewire._rows import (
    LIST_FIELDS,
    TRUTH_FIELDS,
    UnreadableValueError,
    choices_of,
    default_references,
    is_missing,
    plain,
    truth_of,
    unpacked_list,
)
from gradewire.items import local_picture, picture_digest
from gradewire_cli.problems import InputError, redacted_url
from gradewire_cli.rows.cells import CellNotes, CellReading, HumanLabel, read_labels, reading_of
from gradewire_cli.rows.columns import (
    FILE_GROUPING,
    Layouts,
    RowOptions,
    check_columns,
    check_texts,
    question_notes,
    refusal,
    shared_name_notes,
)
from gradewire_cli.rows.formats import Record, printable

ITEM_FIELDS = (
    "question",
    "references",
    "prediction",
    "synthetic_answers",
    "caption",
    "captions",
    "group",
    "choices",
    "answerable",
)
_NAME_CHARACTERS = 200
MOST_PICTURES = 64
"""Maximum number of pictures of a row that a judge sees."""
# Number of first rows to check for columns, labels and synthetic answers.
PEEK_ROWS = 64
OTHER_FORMAT = ". If the file has another format or encoding, use --input-format or --encoding"


@dataclass(frozen=True, slots=True)
class Row:
    """A row that is ready to be sent.

    Attributes:
        id: The ID in the file, or the row index.
        item: The item for `Client.score`, or None if the row is unreadable.
        digest: Digest (32 hex digits) of everything that a score or an output row depends on, except the picture.
        group: The row's group in addition to model and data set, or "".
        flags: Reasons against using the row, for example an answer that changes over time.
        error_class: Class that an annotator gave for metrics' wrong verdicts on the row, or "".
        pictures: Each picture's path, URL, data URI or ID in the row. "" stands for one that cannot be named.
        picture_digest: Digest (32 hex digits) of the pictures' bytes, or "" unless all pictures are usable.
        is_unreadable: True if the row could not be read at all, so that its fields are unknown.
        kept_columns: Columns to copy to the output.
        grouping: Values that assign the row to groups, by name in --group-by.
        question_key: Key (32 hex digits) that rows with the same question share. See `question_key_of`.
    """

    index: int
    position: str
    id: str
    item: Mapping[str, Any] | None
    problem: str
    digest: str
    human: HumanLabel = field(default_factory=HumanLabel)
    dataset: str = ""
    model: str = ""
    group: str = ""
    flags: tuple[str, ...] = ()
    error_class: str = ""
    question_key: str = ""
    pictures: tuple[str, ...] = ()
    picture_digest: str = ""
    kept_columns: Mapping[str, Any] = field(default_factory=dict)
    grouping: Mapping[str, str] = field(default_factory=dict)
    file: str = ""
    question_id: str = ""
    has_id: bool = False
    is_unreadable: bool = False
    values: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def picture(self) -> str:
        """The row's first picture, or ""."""
        return self.pictures[0] if self.pictures else ""

    @property
    def key(self) -> tuple[int, str]:
        """The row's index and its content's digest, which identify an earlier result."""
        return self.index, self.digest + self.picture_digest

    def is_source_of(self, output: Mapping[str, Any]) -> bool:
        """Return True if an output row was made from this row, whatever columns it kept."""
        if output["digest"] == self.digest:
            return True
        kept = {name: value for name, value in output.get("input", {}).items() if name not in self.kept_columns}
        return bool(kept) and output["digest"] == _digest([self.id, self.values, {**kept, **self.kept_columns}])


def is_wanted(fields: Mapping[str, Any], where: Mapping[str, Container[str]]) -> bool:
    """Return True if a row has an allowed value in each column of `where`."""
    return all(str(fields.get(column)) in allowed for column, allowed in where.items())


def read_rows(records: Iterable[Record], layouts: Layouts, reading: CellReading) -> Iterator[Row]:
    """Yield rows for the unreadable records and for the records that match --where."""
    for record in records:
        if record.fields is None:
            yield _unreadable(record)
            continue
        try:
            options = layouts.options_of(tuple(record.fields))
        except AmbiguousColumnsError as error:
            problem = f"has columns that the first rows lack: {printable(str(error))}. Use --map FIELD=COLUMN"
            yield _unreadable(replace(record, fields=None, problem=problem, raw=repr(record.fields)))
            continue
        if is_wanted(record.fields, options.where):
            yield _row(record, record.fields, options, reading)


def result_key(output: Mapping[str, Any]) -> tuple[int, str]:
    """Return the `Row.key` of the input row that an output row belongs to."""
    return output["index"], output["digest"] + output.get("picture_digest", "")


def _unreadable(record: Record) -> Row:
    return Row(
        index=record.index,
        position=record.position,
        id=printable(record.id) or str(record.index),
        item=None,
        problem=f"{record.position} {record.problem}",
        digest=_digest([record.problem, record.raw]),
        file=record.file,
        is_unreadable=True,
    )


def _row(record: Record, fields: Mapping[str, Any], options: RowOptions, reading: CellReading) -> Row:
    def text(name: str) -> str:
        return text_of(fields, options.names(name))

    values: dict[str, Any] = {}
    problem = ""
    for name in ITEM_FIELDS:
        column = _column(fields, options.names(name))
        try:
            value = _value_of(name, column, fields.get(column), reading)
        except UnreadableValueError as error:
            problem = problem or f"{record.position}.{printable(column + str(error))}"
            value = fields[column]
        if value is None and name == "prediction" and column in fields:
            value = ""  # null, which means that the model gave no answer
        if value is not None:
            values[name] = value
    if not problem:
        default_references(values)
    own_id = text("id")
    identifier = own_id or str(record.index)
    columns = [name for name in fields if name not in record.nested]
    kept = {name: fields.get(name) for name in (columns if options.kept_columns is None else options.kept_columns)}
    missing = [name for name in options.needed if name in ITEM_FIELDS and values.get(name) is None]
    if missing and not problem:
        problem = _lack(record.position, fields, missing[0], options.names(missing[0]))
    return Row(
        index=record.index,
        position=record.position,
        id=identifier,
        has_id=bool(own_id),
        item=None if problem else {"id": identifier, **values},
        problem=problem,
        digest=_digest([identifier, values, kept] if kept else [identifier, values]),
        values=values,
        kept_columns=kept,
        grouping=_grouping(fields, options),
        file=record.file,
        human=human_label(fields, options, reading),
        dataset=text("dataset"),
        model=text("model"),
        group=text("group"),
        flags=flags_of(value_of(fields, options.names("flags"))),
        error_class=text("error_class").strip()[:_NAME_CHARACTERS],
        question_key=question_key_of(text("question_id"), text("image"), values),
        question_id=text("question_id").strip(),
        pictures=pictures_of(value_of(fields, options.names("image")[::-1])),
    )


def _value_of(name: str, column: str, value: Any, reading: CellReading) -> Any:
    if name in TRUTH_FIELDS:
        return truth_of(reading.value(column, value))
    if name in LIST_FIELDS:
        return reading.texts(column, choices_of(value) if name == "choices" else value)
    return reading.text(column, value)


def _grouping(fields: Mapping[str, Any], options: RowOptions) -> dict[str, str]:
    values = {name: text_of(fields, options.grouping_names(name)) for name in options.grouped_by}
    if FILE_GROUPING in values and FILE_GROUPING not in fields:
        values[FILE_GROUPING] = options.file
    return values


def human_label(fields: Mapping[str, Any], options: RowOptions, reading: CellReading) -> HumanLabel:
    """Return a row's human label."""

    def label(column: str) -> Any:
        try:
            return reading.value(column, fields.get(column))
        except UnreadableValueError:
            return fields[column]  # a spreadsheet's error, which a note reports

    annotators = options.annotator_columns(fields)
    listed = [label(column) for column in annotators] or label(_column(fields, options.names("labels")))
    return read_labels(label(_column(fields, options.names("label"))), listed, options.label_map)


def pictures_of(value: Any) -> tuple[str, ...]:
    """Return the pictures that a cell names: a path, an address, an ID, an object with a path, or a list of these.

    "" stands for an entry of a list that names no picture, so that no picture is missing without an error.
    """
    value = plain(value)
    if isinstance(value, str) and (listed := unpacked_list(value)) is not None:
        value = listed
    if isinstance(value, list | tuple):
        return tuple(_picture(each) for each in value if not is_missing(each))
    named = _picture(value)
    return (named,) if named else ()


def _picture(value: Any) -> str:
    # "image" is the picture, its path or an object with a path. "image_id" is often only a number.
    named = value.get("path") if isinstance(value, Mapping) else plain(value)
    return str(named) if isinstance(named, str | int) else ""


def question_key_of(identifier: str, image: str, values: Mapping[str, Any]) -> str:
    """Return a key for a row's question, or "" if the ID, the image and the question are all missing.

    The key is made from the ID; without an ID, from the image and the question; with neither ID nor image, from the
    question and the references. `values` has the row's question and references.
    """
    if identifier.strip():
        return _digest(["id", identifier])
    question = str(values.get("question") or "").strip()
    if image.strip():
        return _digest(["image", image, question])
    # Without image names, only the references distinguish questions with the same words.
    references = values.get("references")
    listed = sorted(map(str, references)) if isinstance(references, list) else [str(references)]
    return _digest(["question", question, listed]) if question else ""


def _column(fields: Mapping[str, Any], names: Sequence[str]) -> str:
    """Return the first of these columns that has a value in a row, otherwise the first column that exists."""
    there = [name for name in names if name in fields] or [*names, ""]
    return next((name for name in there if not is_missing(fields.get(name))), there[0])


def value_of(fields: Mapping[str, Any], names: Sequence[str]) -> Any:
    """Return the first value in these columns, or None."""
    value = fields.get(_column(fields, names))
    return None if is_missing(value) else value


def text_of(fields: Mapping[str, Any], names: Sequence[str]) -> str:
    """Return the first value in these columns as a string, or ""."""
    value = value_of(fields, names)
    return "" if value is None else str(plain(value))


def _lack(place: str, fields: Mapping[str, Any], name: str, names: Iterable[str]) -> str:
    if column := next((column for column in names if column in fields), None):
        return f"{place} has no {name}: column {printable(column)} is empty"
    there = ", ".join(map(printable, fields))
    return f"{place} has no {name} (its columns: {there or 'none'})"


def flags_of(value: Any) -> tuple[str, ...]:
    """Return the flags in a cell, which is a list, or words separated by commas."""
    value = plain(value)
    unpacked = unpacked_list(value) if isinstance(value, str) else value
    listed = [value] if unpacked is None else unpacked
    flags = listed if isinstance(listed, list) else [listed]
    return tuple(part.strip() for flag in flags if flag is not None for part in str(flag).split(",") if part.strip())


def _digest(content: object) -> str:
    # JSON in ASCII escapes lone surrogates, which UTF-8 cannot encode.
    encoded = json.dumps(content, sort_keys=True, ensure_ascii=True, default=repr).encode()
    return hashlib.blake2b(encoded, digest_size=16).hexdigest()


def with_picture_digests(rows: Iterable[Row], folder: Path | None) -> Iterator[Row]:
    """Yield the rows with digests of their pictures in `folder`. Without a folder, yield the rows unchanged."""
    for row in rows:
        if folder is None or row.item is None or not row.pictures:
            yield row
        else:
            yield replace(row, picture_digest=pictures_digest(row.pictures, folder))


def pictures_digest(pictures: Sequence[str], folder: Path) -> str:
    """Return a digest (32 hex digits) of several pictures, or "" if one of them cannot be read."""
    if len(pictures) > MOST_PICTURES:
        return ""
    digests = [picture_digest(named, folder) if named else "" for named in pictures]
    if not all(digests):
        return ""
    return digests[0] if len(digests) == 1 else _digest(digests)


def item_with_pictures(row: Row, folder: Path | None) -> tuple[Mapping[str, Any], str]:
    """Return a row's item with its pictures from `folder`, and the reason why one cannot be used, or ""."""
    item = row.item or {}
    if folder is None or not row.pictures:
        return item, ""
    pictures, problem = shown_pictures(row.pictures, folder)
    return ({**item, "images": pictures} if not problem else item), problem


def shown_pictures(pictures: Sequence[str], folder: Path) -> tuple[list[bytes | str], str]:
    """Return the pictures to send, and the reason why one of them cannot be used, or ""."""
    if len(pictures) > MOST_PICTURES:
        return [], f"the row has {len(pictures)} pictures, but at most {MOST_PICTURES} can be shown"
    shown: list[bytes | str] = []
    for place, named in enumerate(pictures, 1):
        number = f" {place} of {len(pictures)}" if len(pictures) > 1 else ""
        if not named:
            return [], f"picture{number} has no path or address"
        try:
            shown.append(local_picture(named, folder))
        except UnreadableValueError as error:
            return [], f"picture{number} {printable(redacted_url(named)[:_NAME_CHARACTERS])}: {error}"
    return shown, ""


@dataclass(frozen=True, slots=True)
class RowSource:
    """The rows of a checked file.

    Attributes:
        has_synthetic: True if all of the first rows have synthetic answers.
        notes: Sentences about the first rows that users should read before they trust a score.
        late_notes: Sentences about later rows, added while `rows` are read.
    """

    rows: Iterator[Row]
    has_synthetic: bool
    notes: Sequence[str] = ()
    late_notes: Sequence[str] = ()
    columns: Sequence[str] = ()


def open_rows(
    path: str, records: Iterable[Record], options: RowOptions, *, only_texts: bool, hint: str = OTHER_FORMAT
) -> RowSource:
    """Check columns and labels in the first rows, and return all rows.

    Raises:
        InputError: The first rows lack a column that is needed or that an option names, or all labels in these rows
            are unreadable.
    """
    remaining = iter(records)
    peeked = list(itertools.islice(remaining, PEEK_ROWS))
    readable = [record.fields for record in peeked if record.fields is not None]
    present = list(dict.fromkeys(column for fields in readable for column in fields))
    layouts = Layouts(options)
    try:
        for layout in dict.fromkeys(map(tuple, readable)):
            layouts.options_of(layout)
    except AmbiguousColumnsError as error:
        raise refusal(path, error, present, options) from None
    options = layouts.options_of_all()
    if readable:
        check_columns(path, present, options, readable)
    wanted = [fields for fields in readable if is_wanted(fields, options.where)]
    lists, texts = (_columns_of(names, present, options) for names in (LIST_FIELDS, ("prediction", "question")))
    reading = reading_of(
        wanted, (*lists, *texts), CellReading(only_texts, options.reference_separator, options.missing)
    )
    check_texts(path, wanted, options, lambda name, value: _value_of(name, "", value, reading))
    _check_labels(path, [record for record in peeked if record.fields in wanted], options, reading)
    notes = CellNotes(lists, texts, reading)
    first = [
        *_nothing_readable(peeked, readable, hint),
        *shared_name_notes(options),
        *question_notes(options, wanted),
        *notes.on(wanted),
    ]
    watched = notes.watched(remaining, lambda fields: is_wanted(fields, options.where))
    rows = read_rows(itertools.chain(peeked, watched), layouts, reading)
    synthetic = [bool(value_of(fields, options.names("synthetic_answers"))) for fields in wanted]
    return RowSource(rows, bool(synthetic) and all(synthetic), first, notes.late, present)


def _nothing_readable(peeked: Sequence[Record], readable: Sequence[object], hint: str) -> Iterator[str]:
    if peeked and not readable:
        why = printable(f"{peeked[0].position} {peeked[0].problem}")
        yield f"the first rows are all unreadable ({why}){hint}"


def _columns_of(names: Iterable[str], present: Collection[str], options: RowOptions) -> list[str]:
    found = (next((column for column in options.names(name) if column in present), None) for name in names)
    return [column for column in found if column is not None]


def _check_labels(path: str, records: Iterable[Record], options: RowOptions, reading: CellReading) -> None:
    if "label" not in options.needed:
        return
    first = ""
    for record in records:
        human = human_label(record.fields or {}, options, reading)
        if human.value is not None:
            return
        first = first or (human.unreadable and f"{record.position}: {human.unreadable}")
    if first:
        raise InputError(
            f"{path}: the first labels are all unreadable ({first}). Give words a value, for example "
            "--label-map correct=1,partly=0.5,incorrect=0"
        )
