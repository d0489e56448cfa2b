"""Checks the columns and labels of a file on its first rows, before any is scored."""

import itertools
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from gradewire._input import LIST_FIELDS
from gradewire_cli.problems import InputError
from gradewire_cli.rows.cells import CellNotes, CellReading, reading_of
from gradewire_cli.rows.formats import Record, printable
from gradewire_cli.rows.row import (
    FILE_GROUPING,
    GROUPING_FIELDS,
    Row,
    RowOptions,
    human_label,
    is_wanted,
    read_rows,
    value_of,
)

# Rows looked at before the first is scored: columns are checked, and the synthetic answers found, on these.
PEEK_ROWS = 64
OTHER_FORMAT = ": if the file is of another format or encoding, give --input-format or --encoding"


@dataclass(frozen=True, slots=True)
class RowSource:
    """Rows of a checked file.

    Attributes:
        rows: Read lazily.
        has_synthetic: Whether all of the first rows carry synthetic answers.
        notes: What people should know of the first rows before they trust a score, in sentences.
        late_notes: The same of the rows behind them, filled while `rows` are read.
        columns: Those of the first rows.
    """

    rows: Iterator[Row]
    has_synthetic: bool
    notes: Sequence[str] = ()
    late_notes: Sequence[str] = ()
    columns: Sequence[str] = ()


def open_rows(
    path: str, records: Iterable[Record], options: RowOptions, *, only_texts: bool, way_out: str = OTHER_FORMAT
) -> RowSource:
    """Checks columns and labels on the first rows, and gives all rows.

    Args:
        path: For messages.
        records: All rows.
        options: Which columns and rows are taken.
        only_texts: The format has nothing but texts.
        way_out: What may help where no row can be read.

    Raises:
        InputError: A column that is needed, or named by an option, is in none of the first rows; or none of their
            labels can be read.
    """
    remaining = iter(records)
    peeked = list(itertools.islice(remaining, PEEK_ROWS))
    readable = [record.fields for record in peeked if record.fields is not None]
    present = list(dict.fromkeys(column for fields in readable for column in fields))
    options = options.among(present)
    if readable:
        _check_columns(path, present, options)
    wanted = [fields for fields in readable if is_wanted(fields, options.where)]
    lists, texts = (_columns_of(names, present, options) for names in (LIST_FIELDS, ("prediction", "question")))
    reading = reading_of(
        wanted, (*lists, *texts), CellReading(only_texts, options.reference_separator, options.missing)
    )
    _check_labels(path, [record for record in peeked if record.fields in wanted], options, reading)
    notes = CellNotes(lists, texts, reading)
    first = [*_unreadable(peeked, readable, way_out), *notes.on(wanted)]
    watched = notes.watched(remaining, lambda fields: is_wanted(fields, options.where))
    rows = read_rows(itertools.chain(peeked, watched), options, reading)
    synthetic = [bool(value_of(fields, options.names("synthetic_answers"))) for fields in wanted]
    return RowSource(rows, bool(synthetic) and all(synthetic), first, notes.late, present)


def _unreadable(peeked: Sequence[Record], readable: Sequence[object], way_out: str) -> Iterator[str]:
    if peeked and not readable:
        why = printable(f"{peeked[0].place} {peeked[0].problem}")
        yield f"none of the first rows can be read ({why}){way_out}"


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
        first = first or (human.unreadable and f"{record.place}: {human.unreadable}")
    if first:
        raise InputError(
            f"{path}: none of the first labels can be read ({first}); say what words mean, for instance "
            "--label-map correct=1,partly=0.5,incorrect=0"
        )


def _check_columns(path: str, present: Iterable[str], options: RowOptions) -> None:
    columns = list(present)
    listed = ", ".join(map(printable, columns)) or "none"
    annotators = options.annotator_columns(columns)
    mapped = [column for name, column in options.columns.items() if not (annotators and name == "labels")]
    for column in (*mapped, *annotators, *options.where, *(() if options.any_file else options.kept or ())):
        if column not in columns:
            raise InputError(f"{path}: there is no column {column!r}; the columns are: {listed}")
    for name in options.grouped_by if options.grouping_needed else ():
        names = options.grouping_names(name)
        if not set(names) & set(columns) and name != FILE_GROUPING:
            way_out = f"; --map {name}=COLUMN says which it is" if name in GROUPING_FIELDS else ""
            raise InputError(
                f"{path}: no column for {options.grouping_option} {name} (looked for {', '.join(names)}); the columns "
                f"are: {listed}{way_out}"
            )
    if not options.any_file:
        check_needed(path, columns, options)


def check_needed(path: str, columns: Sequence[str], options: RowOptions) -> None:
    """Refuses what has no column for a field that is needed; raises InputError."""
    annotators = options.annotator_columns(columns)
    listed = ", ".join(map(printable, columns)) or "none"
    for name in options.needed:
        names = options.names(name) + (options.names("labels") if name == "label" else ())
        if not set(names) & set(columns) and not (name == "label" and annotators):
            raise InputError(
                f"{path}: no column for {name} (looked for {', '.join(names)}); "
                f"the columns are: {listed}. Say which it is with --map {name}=COLUMN"
            )
