"""Human labels in a file of their own, joined to the rows by id, with annotators' flags and classes of errors."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import click

from gradewire._columns import ALIASES, similar_columns
from gradewire_cli.options.help import option, stacked
from gradewire_cli.problems import InputError
from gradewire_cli.rows.cells import WHOLE_FLOAT, HumanLabel
from gradewire_cli.rows.columns import RowOptions
from gradewire_cli.rows.files import STDIN
from gradewire_cli.rows.formats import TEXT_CELLS, Reading, format_of, printable, read_file
from gradewire_cli.rows.input_file import named_columns
from gradewire_cli.rows.row import flags_of, open_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gradewire_cli.rows.input_file import InputFile
    from gradewire_cli.rows.row import Row

_FIELDS: Final = ("id", "label", "labels")
LABEL_NAMES: Final = (
    *ALIASES["label"],
    "human_label",
    "human_verdict",
    "human",
    "correct",
    "is_correct",
    "verdict",
    "judgment",
    "judgement",
    "grade",
    "rating",
)
"""Usual names of the label's column in a file that contains only labels."""

FLAGS: Final = "flags"
ERROR_CLASS: Final = "error_class"
NO_FLAG: Final = "none"
"""The word in a cell of flags that says that the annotator sees no reason for a flag."""


def annotator_column(kind: str, annotator: str) -> str:
    """Return the column of an annotator's flags or classes. No annotator's name has a colon."""
    return f"{kind}:{annotator}"


def _is_mark(column: str) -> bool:
    kind, _, _ = column.partition(":")
    return bool(similar_columns((FLAGS, ERROR_CLASS), [kind]))


labels_file_options = stacked(option("--labels-file"), option("--labels-map", multiple=True))


@dataclass(frozen=True, slots=True)
class Marks:
    """Annotators' flags and class of an error for a row.

    Attributes:
        flags: Each flag that an annotator set.
        error_class: The class that most annotators gave, or "" without one.
    """

    flags: tuple[str, ...] = ()
    error_class: str = ""

    def on(self, row: Row) -> Row:
        """Return the row with these flags in addition to its own, and with this class if there is one."""
        flags = tuple(dict.fromkeys((*row.flags, *self.flags)))
        return replace(row, flags=flags, error_class=self.error_class or row.error_class)


@dataclass(frozen=True, slots=True)
class LabelsFile:
    """A file with labels, and the options for reading it.

    The columns flags and error_class, or `annotator_column` of each annotator, are read too.

    Attributes:
        adds: True for --add. Rows without a label in the file keep their own. If no column has a usual name of a label,
            every other column except the id contains an annotator's labels.
    """

    path: str
    options: RowOptions
    adds: bool = False

    def read(self) -> JoinedLabels:
        """Read all labels.

        Raises:
            InputError: The file or one of its rows is unreadable, a column is missing or unclear, an id is missing, or
                an id has two labels.
        """
        only_texts = format_of(self.path, None) in TEXT_CELLS
        options = self._with_annotators() if self.adds else self.options
        records = read_file(self.path, Reading(columns=options.named_columns))
        source = open_rows(self.path, records, replace(options, kept_columns=None), only_texts=only_texts)
        self._check_label_column(source.columns, options)
        labels: dict[str, HumanLabel] = {}
        positions: dict[str, str] = {}
        marks: dict[str, Marks] = {}
        for row in source.rows:
            self._add(row, labels, positions)
            found = _marks(row)
            if row.has_id and (found.flags or found.error_class):
                marks[id_key(row.id)] = found
        return JoinedLabels(self.path, labels, self.adds, marks)

    def _with_annotators(self) -> RowOptions:
        """Return the options, with every column except the id as an annotator's if no column is known as a label's."""
        first = next(read_file(self.path, Reading()), None)
        columns = list(first.fields or ()) if first is not None else []
        ids = similar_columns(self.options.names("id"), columns)
        known = {"label", "labels"} & self.options.columns.keys() or similar_columns(
            (*LABEL_NAMES, *ALIASES["labels"]), columns
        )
        names = [column for column in columns if column not in ids and not _is_mark(column)]
        if known or not ids or not names:
            return self.options
        field_name = "labels" if len(names) > 1 else "label"
        return replace(self.options, columns={**self.options.columns, field_name: ",".join(names)})

    def _check_label_column(self, columns: Sequence[str], options: RowOptions) -> None:
        found = similar_columns(LABEL_NAMES, columns)
        if len(found) > 1 and found[0] != "label" and not {"label", "labels"} & options.columns.keys():
            ways = ", or ".join(f"--labels-map label={column}" for column in found)
            raise InputError(printable(f"{self.path}: {' or '.join(found)} could be the label. Use {ways}"))

    def _add(self, row: Row, labels: dict[str, HumanLabel], positions: dict[str, str]) -> None:
        human, place = row.human, f"{self.path} {row.position}"
        if row.is_unreadable:
            raise InputError(printable(f"{self.path}: {row.problem}. Correct this row"))
        if human.value is None and not human.unreadable:
            return
        if not row.has_id:
            raise InputError(f"{place} has a label, but no id. Add the id of the row with this answer")
        key = id_key(row.id)
        if human.unreadable:
            human = replace(human, unreadable=f"{human.unreadable} at {place}")
        earlier = labels.setdefault(key, human)
        first = positions.setdefault(key, row.position)
        if (earlier.value, earlier.annotations) != (human.value, human.annotations):
            raise InputError(
                printable(
                    f"{place} has another label for the id {row.id} than {first}. Keep one row for each id. Labels by "
                    "several annotators need a column each (--labels-map labels=COLUMN,COLUMN)"
                )
            )


def _marks(row: Row) -> Marks:
    given: dict[str, list[Any]] = {FLAGS: [], ERROR_CLASS: []}
    for column, value in row.kept_columns.items():
        kind, between, _ = column.partition(":")
        if between and kind in given:
            given[kind].append(value)
    flags = dict.fromkeys((*row.flags, *(flag for value in given[FLAGS] for flag in flags_of(value))))
    classes = Counter(str(value).strip() for value in given[ERROR_CLASS] if str(value or "").strip())
    most = [name for name, number in classes.items() if number == max(classes.values())]
    own = row.error_class or (most[0] if len(most) == 1 else "")
    return Marks(tuple(flag for flag in flags if flag != NO_FLAG), own)


@dataclass(slots=True)
class JoinedLabels:
    """The labels of a file by id, joined to rows one after another.

    Attributes:
        adds: True if rows without a label in the file keep their own.
        marks: Annotators' flags and classes of errors by id.
        used: Ids of the labels that have a row.
    """

    path: str
    labels: Mapping[str, HumanLabel]
    adds: bool = False
    marks: Mapping[str, Marks] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)

    @property
    def without_row(self) -> int:
        """Number of labels that no row has."""
        return len(self.labels) - len(self.used)

    def joined(self, rows: Iterator[Row]) -> Iterator[Row]:
        """Yield the rows with the labels of this file, which replace labels in the rows, or are added to them.

        Raises:
            InputError: Two rows have the id of one label.
        """
        self.used.clear()
        for row in rows:
            key = id_key(row.id) if row.has_id else None
            human = None if key is None else self.labels.get(key)
            if key in self.used:
                raise InputError(
                    printable(
                        f"{row.position} has the same id as an earlier row, {row.id}, so its label in {self.path} "
                        "could belong to either row. Give each row its own id, or use --map id=COLUMN or --where"
                    )
                )
            if key is not None and human is not None:
                self.used.add(key)
            marked = row if key is None or key not in self.marks else self.marks[key].on(row)
            if human is None and self.adds:
                yield marked
            else:
                yield replace(marked, human=human or HumanLabel())

    def has(self, row: Row) -> bool:
        """Return True if the file has a label for this row."""
        return row.has_id and id_key(row.id) in self.labels

    def check(self, source: InputFile) -> None:
        """Raise InputError if two rows have one label, or no row has a label, before any row is scored."""
        if source.is_stdin:
            return
        first = ""
        for row in self.joined(source.open().rows):
            first = first or row.id
        if self.labels and not self.used:
            raise InputError(
                printable(
                    f"no id of {source.name} (the first is {first}) is in {self.path} (the first there is "
                    f"{next(iter(self.labels))}). Use --map id=COLUMN or --labels-map id=COLUMN"
                )
            )


def id_key(identifier: str) -> str:
    """Return the text that labels and rows are joined by."""
    # Table libraries write the id 4 as 4.0 if another row has no id.
    text = identifier.strip()
    return text.removesuffix(".0") if WHOLE_FLOAT.match(text) else text


def labels_file_of(options: Mapping[str, Any], source: InputFile) -> LabelsFile | None:
    """Parse `labels_file_options` and --add; return None without a file, and raise click.UsageError for a conflict."""
    path, added, pairs = options.get("labels_file"), options.get("add"), options.get("labels_map", ())
    if path and added:
        raise click.UsageError("--labels-file replaces all labels and --add only some. Leave one out")
    if not path and not added:
        if pairs:
            raise click.UsageError("--labels-map needs --labels-file. Give both")
        return None
    if STDIN in {path, added}:
        raise click.UsageError(f"{'--add' if added else '--labels-file'} cannot be standard input. Save it to a file")
    if added:
        path = added
    mapped = () if added else [name for name in ("label", "labels") if name in source.options.columns]
    if mapped:
        raise click.UsageError(
            f"--map {mapped[0]} does not work with --labels-file. Use --labels-map {mapped[0]}=COLUMN"
        )
    ids = tuple(filter(None, (source.options.columns.get("id"), *ALIASES["id"])))
    rows = RowOptions(
        columns=named_columns("--labels-map", pairs, _FIELDS),
        needed=("id", "label"),
        missing=source.options.missing,
        label_map=source.options.label_map,
        map_option="--labels-map",
        usual={**ALIASES, "id": tuple(dict.fromkeys(ids)), "label": LABEL_NAMES},
    )
    return LabelsFile(str(path), rows, bool(added))
