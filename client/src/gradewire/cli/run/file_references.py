"""The distinct references of a file, for `prepare` and for metrics that weigh words by a corpus."""

import json
from dataclasses import dataclass, field
from typing import Any, Self

from gradewire.cli.input.files import InputFile
from gradewire.cli.problems import InputError

_FIELDS = ("question", "references", "synthetic_answers")


@dataclass(slots=True)
class FileReferences:
    """The distinct references of a file.

    Attributes:
        entries: What `Client.prepare` takes.
        places: Where each was seen first.
        problems: Of rows that cannot be read.
        rows: Rows of the file.
        entry_of: Position in `entries` by row number.
        has_synthetic: Whether all of the first rows carry synthetic answers.
        notes: What people should know of the cells, in sentences.
    """

    entries: list[dict[str, Any]] = field(default_factory=list)
    places: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    rows: int = 0
    entry_of: dict[int, int] = field(default_factory=dict)
    has_synthetic: bool = False
    notes: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, source: InputFile) -> Self:
        """Reads a file; raises InputError where no row has references."""
        opened = source.open()
        found = cls(has_synthetic=opened.has_synthetic)
        seen: dict[str, int] = {}
        for row in opened.rows:
            found.rows += 1
            if row.item is None:
                found.problems.append(row.problem)
                continue
            entry = {name: row.item[name] for name in _FIELDS if name in row.item}
            key = json.dumps(entry, sort_keys=True, default=repr)
            if key not in seen:
                seen[key] = len(found.entries)
                found.entries.append(entry)
                found.places.append(row.place)
            found.entry_of[row.index] = seen[key]
        found.notes += (*opened.notes, *opened.late_notes)
        if not found.entries:
            raise InputError(f"{source.name}: there is no row with references")
        return found
