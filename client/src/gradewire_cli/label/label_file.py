"""The file of `gradewire label`: a CSV file with the rows' ids and one column of labels for each annotator."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from gradewire._columns import ALIASES, similar_columns
from gradewire_cli.problems import InputError, named_errors
from gradewire_cli.results.journal import replacing
from gradewire_cli.rows.formats import printable
from gradewire_cli.scoring.labels_file import LABEL_NAMES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

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
        taken = (*ALIASES[_ID], *LABEL_NAMES, *ALIASES["labels"])
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
    """

    path: Path
    annotators: list[str]
    labels: dict[str, dict[str, float]] = field(default_factory=dict)

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
        self.annotators = head[1:]
        check_annotators(self.annotators)
        for number, record in enumerate(records, 2):
            if len(record) != len(head):
                raise InputError(f"{self.path}: row {number} has {len(record)} cells, but the first has {len(head)}")
            identifier, *cells = record
            if identifier in self.labels:
                raise InputError(printable(f"{self.path}: row {number} repeats the id {identifier}. Leave one out"))
            given = zip(self.annotators, cells, strict=True)
            self.labels[identifier] = {name: self._label(cell, number) for name, cell in given if cell.strip()}

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
        before = {key: dict(given) for key, given in self.labels.items() if key == identifier}
        given = self.labels.setdefault(identifier, {})
        if label is None:
            given.pop(annotator, None)
        else:
            given[annotator] = label
        if not given:
            del self.labels[identifier]
        try:
            self._write()
        except OSError:
            self.labels.pop(identifier, None)
            self.labels |= before
            raise

    def _write(self) -> None:
        with replacing(self.path) as new, new.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.writer(stream, lineterminator="\n")
            writer.writerow([_ID, *self.annotators])
            for identifier, given in self.labels.items():
                cells = [f"{given[name]:g}" if name in given else "" for name in self.annotators]
                writer.writerow([identifier, *cells])
