"""The file of `gradewire label`: a CSV file with the rows' ids and one column of labels for each annotator.

An annotator who sets flags or classes of errors has a column for each of them, too.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeVar

from gradewire._columns import ALIASES, similar_columns
from gradewire_cli.problems import InputError, named_errors
from gradewire_cli.results.journal import replacing
from gradewire_cli.rows.formats import printable
from gradewire_cli.rows.row import flags_of
from gradewire_cli.scoring.labels_file import ERROR_CLASS, FLAGS, LABEL_NAMES, NO_FLAG, annotator_column

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

_Value = TypeVar("_Value")

RIGHT, UNCLEAR, WRONG = 1.0, 0.25, 0.0
LABELS: Final = (RIGHT, UNCLEAR, WRONG)
"""The labels. An unclear answer counts as wrong, because labels from 0.5 on count as right."""
_ID: Final = "id"
_NAME: Final = re.compile(r"\w[\w .-]{0,63}")
"""An annotator's name. It has no comma or equals sign, which options use, and no spreadsheet reads it as a formula."""


def check_annotators(names: Sequence[str]) -> None:
    """Raise InputError if a name cannot be a column of labels, or if two annotators have the same name."""
    for name in names:
        if not _NAME.fullmatch(name) or name != name.strip():
            raise InputError(
                printable(f"--annotator {name}: use 1 to 64 letters, digits, blanks, dots, hyphens and underscores")
            )
        taken = (*ALIASES[_ID], *LABEL_NAMES, *ALIASES["labels"], FLAGS, ERROR_CLASS)
        if similar_columns(taken, [name]):
            raise InputError(f"--annotator {name}: this is the name of another column. Use another name")
    if repeated := [name for name in names if names.count(name) > 1]:
        raise InputError(f"--annotator {repeated[0]} is given twice. Leave one out")


@dataclass(slots=True)
class LabelFile:
    """The labels by id and annotator, in memory and in a CSV file.

    Attributes:
        annotators: The columns of labels in file order.
        labels: Labels from 0 to 1 by id, then by annotator, in file order.
        flags: Flags by id, then by annotator. An empty tuple says that the annotator sees no reason for a flag.
        classes: Classes of errors by id, then by annotator.
    """

    path: Path
    annotators: list[str]
    labels: dict[str, dict[str, float]] = field(default_factory=dict)
    flags: dict[str, dict[str, tuple[str, ...]]] = field(default_factory=dict)
    classes: dict[str, dict[str, str]] = field(default_factory=dict)

    @classmethod
    def open(cls, path: Path, annotators: Sequence[str]) -> LabelFile:
        """Read the file if it exists, and add a column for each new annotator.

        Raises:
            InputError: The file is unreadable or not of this form, or a name cannot be a column (`check_annotators`).
        """
        check_annotators(annotators)
        found = cls(path, [])
        if path.exists():
            with named_errors(path), path.open(encoding="utf-8-sig", newline="") as stream:
                try:
                    found._read(csv.reader(stream, strict=True))
                except (csv.Error, UnicodeDecodeError) as error:
                    raise InputError(f"{path} is not a CSV file in UTF-8: {error}") from error
        found.annotators += [name for name in annotators if name not in found.annotators]
        return found

    def _read(self, records: Iterator[list[str]]) -> None:
        head = next(records, [])
        if not head or head[0] != _ID:
            raise InputError(
                f"{self.path} was not written by gradewire label: its first column is not {_ID}. Use --out"
            )
        marks = {annotator_column(kind, name) for kind in (FLAGS, ERROR_CLASS) for name in head}
        self.annotators = [name for name in head[1:] if name not in marks]
        check_annotators(self.annotators)
        seen: set[str] = set()
        for number, record in enumerate(records, 2):
            if len(record) != len(head):
                raise InputError(f"{self.path}: row {number} has {len(record)} cells, but the first has {len(head)}")
            identifier = record[0]
            if identifier in seen:
                raise InputError(printable(f"{self.path}: row {number} repeats the id {identifier}. Leave one out"))
            seen.add(identifier)
            cells = {column: cell.strip() for column, cell in zip(head[1:], record[1:], strict=True) if cell.strip()}
            for name in self.annotators:
                if name in cells:
                    self.labels.setdefault(identifier, {})[name] = self._label(cells[name], number)
                if found := cells.get(annotator_column(FLAGS, name)):
                    flags = tuple(flag for flag in flags_of(found) if flag != NO_FLAG)
                    self.flags.setdefault(identifier, {})[name] = flags
                if found := cells.get(annotator_column(ERROR_CLASS, name)):
                    self.classes.setdefault(identifier, {})[name] = found

    def _label(self, cell: str, number: int) -> float:
        try:
            label = float(cell)
        except ValueError:
            label = -1.0
        if not 0 <= label <= 1:
            raise InputError(printable(f"{self.path}: row {number} has the label {cell}. Use a number from 0 to 1"))
        return label

    def label(self, identifier: str, annotator: str) -> float | None:
        """Return an annotator's label, or None."""
        return self.labels.get(identifier, {}).get(annotator)

    def set(self, identifier: str, annotator: str, label: float | None) -> None:
        """Set a label, or remove it with None, and write the file. After an error, the label is as before.

        Raises:
            OSError: The file cannot be written.
        """
        _store(self.labels, identifier, annotator, label, self._write)

    def set_flags(self, identifier: str, annotator: str, flags: tuple[str, ...]) -> None:
        """Set an annotator's flags; raise OSError like `set`."""
        _store(self.flags, identifier, annotator, flags, self._write)

    def set_class(self, identifier: str, annotator: str, error_class: str | None) -> None:
        """Set an annotator's class of an error, or remove it with None; raise OSError like `set`."""
        _store(self.classes, identifier, annotator, error_class, self._write)

    def _write(self) -> None:
        columns = [(name, name, self._label_cell) for name in self.annotators]
        for kind, cell, table in ((FLAGS, self._flags_cell, self.flags), (ERROR_CLASS, self._class_cell, self.classes)):
            given = {name for by_name in table.values() for name in by_name}
            columns += [(annotator_column(kind, name), name, cell) for name in self.annotators if name in given]
        with replacing(self.path) as new, new.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.writer(stream, lineterminator="\n")
            # A writer of minimal quotes leaves a carriage return bare, which readers take for the end of the row.
            quoting = csv.writer(stream, lineterminator="\n", quoting=csv.QUOTE_ALL)
            writer.writerow([_ID, *(column for column, _, _ in columns)])
            for identifier in dict.fromkeys((*self.labels, *self.flags, *self.classes)):
                row = [identifier, *(cell(identifier, name) for _, name, cell in columns)]
                (quoting if "\r" in identifier else writer).writerow(row)

    def _label_cell(self, identifier: str, name: str) -> str:
        label = self.label(identifier, name)
        return "" if label is None else f"{label:g}"

    def _flags_cell(self, identifier: str, name: str) -> str:
        flags = self.flags.get(identifier, {}).get(name)
        return "" if flags is None else ",".join(flags) or NO_FLAG

    def _class_cell(self, identifier: str, name: str) -> str:
        return self.classes.get(identifier, {}).get(name, "")


def _store(
    table: dict[str, dict[str, _Value]],
    identifier: str,
    annotator: str,
    value: _Value | None,
    write: Callable[[], None],
) -> None:
    """Set an annotator's value, or remove it with None, and write. After an error, the table is as before."""
    before = {key: dict(given) for key, given in table.items() if key == identifier}
    given = table.setdefault(identifier, {})
    if value is None:
        given.pop(annotator, None)
    else:
        given[annotator] = value
    if not given:
        del table[identifier]
    try:
        write()
    except OSError:
        table.pop(identifier, None)
        table |= before
        raise
