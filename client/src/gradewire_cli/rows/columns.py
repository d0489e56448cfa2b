"""Choose the columns that each field is read from, and refuse files whose columns are missing or ambiguous."""

import itertools
import shlex
from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from gradewire._columns import (
    ALIASES,
    CHOSEN_FIELDS,
    CONTENT_FIELDS,
    SHARED_NAMES,
    AmbiguousColumnsError,
    choose_columns,
    columns_among,
    similar_columns,
    spelled,
)
from gradewire._rows import UnreadableValueError, is_missing, plain
from gradewire_cli.problems import InputError
from gradewire_cli.rows.formats import printable
from gradewire_cli.rows.paths import text_paths

GROUPING_FIELDS = ("model", "dataset", "group")
"""Row fields that --group-by and --map accept by name. Any other name in --group-by is a column of the file."""
FILE_GROUPING = "file"
"""The name in --group-by that groups rows by file, unless a column has this name."""

_MAYBE_QUESTIONS: Final = ("input", "inputs", "prompt", "prompts", "instruction", "messages")
"""Columns that often contain the question, but also more than that."""
_MOST_WAYS: Final = 6
_MOST_NAMES: Final = 6
_MOST_LAYOUTS: Final = 256
"""Number of combinations of columns to remember, which is more than the first rows of a file can have."""


@dataclass(frozen=True, slots=True)
class RowOptions:
    """Options for the columns and rows of a file.

    Attributes:
        columns: Columns by field from --map, which replace the field's usual column names. `labels` may name several
            columns, one per annotator, separated by commas.
        where: Allowed values by column. Rows with other values are skipped.
        label_map: Numbers for labels that are words or grades.
        kept_columns: Columns to copy to the output. None means all columns.
        grouped_by: Row fields or columns that group rows.
        grouping_needed: True if every file must have the columns in `grouped_by`.
        any_file: True if some files may lack kept or needed columns that another file has.
        usual: Usual column names by field.
        map_option: The option that sets `columns`.
        present: The file's columns, from `Layouts`.
        found: Columns by field among `present`, the preferred column first.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    where: Mapping[str, frozenset[str]] = field(default_factory=dict)
    needed: Sequence[str] = CHOSEN_FIELDS
    reference_separator: str = ""
    missing: Sequence[str] = ()
    label_map: Mapping[str, float] = field(default_factory=dict)
    kept_columns: Sequence[str] | None = ()
    grouped_by: Sequence[str] = ()
    grouping_option: str = "--group-by"
    grouping_needed: bool = True
    any_file: bool = False
    file: str = ""
    usual: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: ALIASES)
    map_option: str = "--map"
    present: Sequence[str] = ()
    found: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def names(self, name: str) -> tuple[str, ...]:
        """Return the possible column names for a field."""
        if name in self.columns:
            return (self.columns[name],)
        # A usual name that is present but not found is the column of another field.
        return self.found.get(name) or tuple(usual for usual in self.usual[name] if usual not in self.present)

    @property
    def named_columns(self) -> tuple[str, ...]:
        """The columns, or paths to values inside columns, that options name."""
        mapped = (part for column in self.columns.values() for part in (column, *column.split(",")))
        grouped_by = (name for name in self.grouped_by if name not in GROUPING_FIELDS)
        return tuple(dict.fromkeys((*mapped, *self.where, *(self.kept_columns or ()), *grouped_by)))

    @property
    def chosen_fields(self) -> tuple[str, ...]:
        """The fields whose column must be clear."""
        return CHOSEN_FIELDS if "prediction" in self.needed else tuple(n for n in CHOSEN_FIELDS if n in self.needed)

    def grouping_names(self, name: str) -> tuple[str, ...]:
        """Return the possible column names for a name in --group-by."""
        return self.names(name) if name in GROUPING_FIELDS else (name,)

    def annotator_columns(self, present: Container[str]) -> tuple[str, ...]:
        """Return the annotators' columns, or () unless --map gives each annotator a column."""
        mapped = self.columns.get("labels", "")
        return tuple(mapped.split(",")) if "," in mapped and mapped not in present else ()


class Layouts:
    """The fields' columns for each combination of columns that a file's rows have.

    A row of JSON may lack columns, but a column has the same field in all rows of a file.
    """

    def __init__(self, options: RowOptions) -> None:
        self._options = options
        self._known: dict[tuple[str, ...], RowOptions] = {}
        self._fields: dict[str, str] = {}

    def options_of(self, layout: tuple[str, ...]) -> RowOptions:
        """Return the options for rows with these columns; raise AmbiguousColumnsError if they are unclear."""
        if layout not in self._known:
            if len(self._known) >= _MOST_LAYOUTS:  # rows of JSON may have any number of keys
                self._known.clear()
            self._known[layout] = replace(self._options, present=layout, found=self._found(layout))
        return self._known[layout]

    def options_of_all(self) -> RowOptions:
        """Return the options for all rows with a known combination of columns."""
        found: dict[str, tuple[str, ...]] = {}
        for options in self._known.values():
            for name, columns in options.found.items():
                found[name] = tuple(dict.fromkeys((*found.get(name, ()), *columns)))
        return replace(self._options, present=tuple(dict.fromkeys(itertools.chain(*self._known))), found=found)

    def _found(self, layout: Sequence[str]) -> dict[str, tuple[str, ...]]:
        given = self._options.columns
        # A reader of logs decides itself what the references and the prediction are: its other columns are neither.
        own = {spelled(each) for name in CHOSEN_FIELDS for each in self._options.usual.get(name, ALIASES[name])}
        known = {spelled(each) for name in CHOSEN_FIELDS for each in ALIASES[name]} - own
        layout = [column for column in layout if spelled(column) not in known]
        others = (column for name, column in given.items() if name in CONTENT_FIELDS)
        taken = {part for column in others for part in (column, *column.split(","))}
        chosen = self._chosen(layout, taken)
        found = {}
        for name, usual in self._options.usual.items():
            if name in given:
                continue
            if name in CHOSEN_FIELDS:
                found[name] = columns_among(layout, name, chosen, taken)
            else:
                found[name] = tuple(similar_columns(usual, layout, taken if name in CONTENT_FIELDS else ()))
        return found

    def _chosen(self, layout: Sequence[str], taken: Container[str]) -> Mapping[str, str]:
        given = self._options.columns
        chosen = choose_columns(
            layout, self._options.needed, read=self._options.chosen_fields, given=given, taken=taken
        )
        if not chosen:  # no column, or one that could have either field
            return {self._fields[column]: column for column in layout if column in self._fields}
        for name, column in chosen.items():
            if (other := self._fields.setdefault(column, name)) != name:
                raise AmbiguousColumnsError([{other: column}, {name: column}])
        return chosen


def are_of_output(columns: Collection[str]) -> bool:
    """Return True if columns look like those of a file that `gradewire score` wrote, as JSONL or as a table."""
    has_scores = "scores" in columns or any(column.endswith(".score") for column in columns)
    return has_scores and "index" in columns and "digest" in columns


def refusal(path: str, error: AmbiguousColumnsError, columns: Sequence[str], options: RowOptions) -> InputError:
    """Return the error for a file with unclear columns, with the --map options that make them clear."""
    choices = [
        {name: choice.get(name, "COLUMN") for name in options.chosen_fields if name in choice or name in options.needed}
        for choice in error.choices[:_MOST_WAYS]
    ]
    new = [{name: column for name, column in choice.items() if name not in options.columns} for choice in choices]
    ways = ", or ".join(
        dict.fromkeys(" ".join(_map(name, column) for name, column in choice.items()) for choice in new)
    )
    return InputError(printable(f"{path}: {error}. {_listed(columns)}. Use {ways}"))


def _map(name: str, column: str) -> str:
    return f"--map {shlex.quote(f'{name}={column}')}"


def _listed(columns: Sequence[str]) -> str:
    return f"Columns: {', '.join(map(printable, columns)) or 'none'}"


def check_columns(
    path: str, columns: Sequence[str], options: RowOptions, rows: Sequence[Mapping[str, Any]] = ()
) -> None:
    """Raise InputError if a file lacks a column that is needed or named by an option. `rows` are its first rows."""
    listed = _listed(columns)
    annotators = options.annotator_columns(columns)
    mapped = [column for name, column in options.columns.items() if not (annotators and name == "labels")]
    for column in (*mapped, *annotators, *options.where, *(() if options.any_file else options.kept_columns or ())):
        if column not in columns:
            raise InputError(f"{path}: no column {column!r}. {listed}{_inside(column, columns, rows)}")
    for name in options.grouped_by if options.grouping_needed else ():
        names = options.grouping_names(name)
        if set(names).isdisjoint(columns) and name != FILE_GROUPING:
            looked = f"{path}: no column for {options.grouping_option} {name} (looked for {', '.join(names)})"
            way_out = f". Use --map {name}=COLUMN" if name in GROUPING_FIELDS else ""
            raise InputError(f"{looked}. {listed}{way_out}")
    for name in () if options.any_file else options.needed:
        # Questions without an answer need no references.
        others = {"label": "labels", "references": "answerable"}.get(name)
        names = options.names(name) + (options.names(others) if others else ())
        if set(names).isdisjoint(columns) and not (name == "label" and annotators):
            raise InputError(_no_column(path, name, columns, options, rows))


def _no_column(
    path: str, name: str, columns: Sequence[str], options: RowOptions, rows: Sequence[Mapping[str, Any]]
) -> str:
    others = {"label": ("label", "labels")}.get(name, (name,))
    looked = [usual for each in others for usual in options.usual[each]]
    shown = ", ".join(looked[:_MOST_NAMES]) + (", …" if len(looked) > _MOST_NAMES else "")
    text = f"{path}: no column for {name} (looked for {shown}). {_listed(columns)}"
    if are_of_output(columns):
        return printable(
            f"{text}. This is an output of gradewire score that did not keep this column, unless it has an unusual "
            f"name ({options.map_option} {name}=COLUMN). Add --keep-columns all to gradewire score, or name the file "
            "with the answers"
        )
    shared = [column for column in similar_columns(SHARED_NAMES, columns) if column not in options.columns.values()]
    open_fields = [each for each in CHOSEN_FIELDS if each in options.needed and each not in options.columns]
    if name in CHOSEN_FIELDS and shared and len(open_fields) == len(CHOSEN_FIELDS):
        ways = ", or ".join(
            " ".join(_map(each, shared[0] if each == chosen else "COLUMN") for each in CHOSEN_FIELDS)
            for chosen in CHOSEN_FIELDS
        )
        return printable(f"{text}. {shared[0]} could be the references or the prediction. Use {ways}")
    usual = {spelled(each) for each in options.usual[name]}
    paths = dict.fromkeys(path for row in rows for column in row for path in text_paths(row[column], column))
    inside = [path for path in paths if spelled(path.rpartition(".")[2]) in usual]
    ways = " or ".join(_map(name, column) for column in inside[:_MOST_WAYS]) or f"{options.map_option} {name}=COLUMN"
    return printable(f"{text}. Use {ways}")


def _inside(column: str, columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> str:
    """Return a sentence with the paths that an object has instead of `column`, or ""."""
    head = next((each for each in columns if column.startswith(f"{each}.")), None)
    paths = dict.fromkeys(path for row in rows if head in row for path in text_paths(row[head], head)) if head else ()
    return printable(f". Values in {head}: {', '.join(list(paths)[:_MOST_WAYS])}") if paths else ""


def check_texts(
    path: str, rows: Sequence[Mapping[str, Any]], options: RowOptions, reads: Callable[[str, Any], object]
) -> None:
    """Raise InputError if a field contains only objects and lists that cannot be read as text.

    `reads` takes a field and a cell, and raises UnreadableValueError.
    """
    needed = [name for name in CHOSEN_FIELDS if name in options.needed]
    for name in (*needed, "question") if needed else ():
        column = next((each for each in options.names(name) if each in options.present), None)
        values = [value for row in rows if not is_missing(value := row.get(column))] if column else []
        if column is None or not values or not all(_has_objects(value) for value in values):
            continue
        if not all(_is_unreadable(name, value, reads) for value in values):
            continue
        paths = list(dict.fromkeys(found for value in values for found in text_paths(value, column)))
        ways = " or ".join(_map(name, found) for found in paths[:_MOST_WAYS])
        what = "objects" if isinstance(plain(values[0]), Mapping) else "lists"
        if ways:
            raise InputError(
                printable(f"{path}: column {column} contains {what}, and the {name} must be text. Use {ways}")
            )


def _has_objects(value: Any) -> bool:
    value = plain(value)
    return isinstance(value, Mapping) or (isinstance(value, list) and any(isinstance(each, Mapping) for each in value))


def _is_unreadable(name: str, value: Any, reads: Callable[[str, Any], object]) -> bool:
    try:
        reads(name, value)
    except UnreadableValueError:
        return True
    return False


def shared_name_notes(options: RowOptions) -> Iterator[str]:
    """Yield a note that says which field a column has whose name could mean the references or the prediction."""
    read = {field: options.found[field][0] for field in CHOSEN_FIELDS if options.found.get(field)}
    if any(spelled(column) in map(spelled, SHARED_NAMES) for column in read.values()):
        said = ", ".join(f"{field} from {printable(column)}" for field, column in read.items())
        yield f"columns: {said}. To read other columns, use --map FIELD=COLUMN"


def question_notes(options: RowOptions, rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a note if no column contains the question, but another column may."""
    if not set(options.names("question")).isdisjoint(options.present):
        return
    for column in similar_columns(_MAYBE_QUESTIONS, options.present, options.columns.values()):
        inside = (path for row in rows for path in text_paths(row.get(column), column))
        way_out = _map("question", next(inside, column))
        yield printable(f"no column for question, which some metrics read. If it is {column}, use {way_out}")
        return
