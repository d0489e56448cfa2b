"""What the cells of a file mean where table libraries and spreadsheets have changed them.

Files of text alone (CSV) have no lists, no missing values and no whole numbers beside missing ones; what stands for
these is read back. What cannot be told is left as it is, with a note for people.
"""

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from gradewire._input.cells import is_of_numbers, unpacked_list
from gradewire._input.values import UnreadableValueError, is_missing, text_of, texts_of

_MAYBE_MISSING: Final = frozenset({"None", "none", "null", "NA", "N/A", "n/a", "-"})
"""What is written where there is nothing, and answered as well."""
_SPREADSHEET_ERROR: Final = re.compile(r"\A(#(REF!|NAME\?|VALUE!|DIV/0!|NUM!|NULL!|SPILL!|CALC!)|#{3,})\Z")
_WHOLE: Final = re.compile(r"\A-?\d+\.0\Z")
_SEPARATORS: Final = ("||", "|", ";")
_MONTHS: Final = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
_CHANGED: Final = {
    "dates that a spreadsheet made": re.compile(
        rf"\A(\d{{1,2}}-({_MONTHS})|({_MONTHS})-\d{{2}}|\d{{4}}-\d\d-\d\d[ T]00:00:00)\Z", re.IGNORECASE
    ),
    "numbers that a spreadsheet rounded": re.compile(r"\A-?\d([.,]\d+)?E[+-]\d+\Z", re.IGNORECASE),
}


def unpacked(cell: Any, *, brackets: str = "[") -> Any:
    """The list, or the JSON, of a cell that begins with one of these brackets; any other cell as it is."""
    if not isinstance(cell, str):
        return cell
    if "[" in brackets and (listed := unpacked_list(cell)) is not None:
        return listed
    if not cell.lstrip().startswith(tuple(brackets)):
        return cell
    try:
        return json.loads(cell)
    except (ValueError, RecursionError):
        return cell


@dataclass(frozen=True, slots=True)
class CellReading:
    """How the cells of one file are read.

    Attributes:
        only_texts: The format has nothing but texts.
        separator: Between the references of one cell; "" for none.
        missing: Further words that stand for nothing.
        whole: Columns of whole numbers that are written as 2.0.
    """

    only_texts: bool = False
    separator: str = ""
    missing: Collection[str] = ()
    whole: Collection[str] = field(default_factory=frozenset)

    def value(self, column: str, value: Any) -> Any:
        """The value of a cell, None where it holds nothing.

        Raises:
            UnreadableValueError: A spreadsheet could not compute it.
        """
        if is_missing(value):
            return None
        if not isinstance(value, str):
            return value
        if value in self.missing:
            return None
        if not self.only_texts:
            return value
        text = value.strip()
        if text in self.missing:
            return None
        if _SPREADSHEET_ERROR.match(text):
            raise UnreadableValueError(f" is {text}, an error of a spreadsheet: mend it there")
        return text.removesuffix(".0") if column in self.whole and _WHOLE.match(text) else value

    def text(self, column: str, value: Any) -> str | None:
        """The text of a cell; raises UnreadableValueError where it has none that is certain."""
        return text_of(self.value(column, value))

    def texts(self, column: str, value: Any) -> list[str | None] | None:
        """The texts of a cell that may hold several; raises UnreadableValueError where they are not certain."""
        value = self.value(column, value)
        if value == "" and self.only_texts:
            return []
        listed = unpacked_list(value) if isinstance(value, str) else None
        if self.separator and isinstance(value, str) and listed is None:
            return [part.strip() for part in value.split(self.separator) if part.strip()]
        return texts_of(listed if listed is not None and self.only_texts else value)


def reading_of(rows: Sequence[Mapping[str, Any]], columns: Iterable[str], options: CellReading) -> CellReading:
    """What the first rows of a file tell of all: which columns are of whole numbers that a table library made 2.0."""
    whole = frozenset(column for column in columns if options.only_texts and _is_whole(rows, column))
    return CellReading(options.only_texts, options.separator, options.missing, whole)


def _is_whole(rows: Sequence[Mapping[str, Any]], column: str) -> bool:
    cells = [cell.strip() for row in rows if isinstance(cell := row.get(column), str)]
    there = [cell for cell in cells if cell]
    return bool(there) and all(map(_WHOLE.match, there))


def notes_on(
    rows: Sequence[Mapping[str, Any]], lists: Collection[str], texts: Collection[str], reading: CellReading
) -> list[str]:
    """What people should know of these cells before they trust a score.

    Args:
        rows: The first rows.
        lists: Columns that may hold several texts.
        texts: Other columns that are scored.
        reading: How they are read.
    """
    notes = [
        f'column {column}: whole numbers are written as "{_first(rows, column)}" and read without ".0"'
        for column in reading.whole
    ]
    for column in (*lists, *texts):
        cells = [cell.strip() for row in rows if isinstance(cell := row.get(column), str) and cell.strip()]
        if column in lists:
            notes += [*_unsplit(column, cells, reading), *_split(column, cells, reading), *_nested(column, rows)]
        if words := sorted(_MAYBE_MISSING.intersection(cells).difference(reading.missing)):
            notes.append(
                f'column {column}: "{words[0]}" is read as an answer; if it says that there is none, give '
                f"--missing {words[0]}"
            )
        for name, pattern in _CHANGED.items():
            if found := next(filter(pattern.match, cells), ""):
                notes.append(f"column {column}: {found!r} looks like one of {name}: write such cells as text there")
    return notes


def _first(rows: Sequence[Mapping[str, Any]], column: str) -> str:
    return next(str(row[column]).strip() for row in rows if _WHOLE.match(str(row.get(column) or "").strip()))


def _split(column: str, cells: Sequence[str], reading: CellReading) -> list[str]:
    """A note where a text is read as a list although it might be an answer."""
    for cell in cells:
        # Where a list can be written as one, or where it holds numbers only, a text in brackets may be meant.
        listed = unpacked_list(cell)
        if listed and is_of_numbers(listed) == reading.only_texts:
            way_out = f"if it is one answer, write it as a list of one text: {json.dumps([cell])[:80]}"
            return [f"column {column}: {cell[:60]!r} is read as {len(listed)} references; {way_out}"]
    return []


def _nested(column: str, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """A note where an entry of a list looks like a list: tables that are written as text twice have those."""
    for row in rows:
        cell = row.get(column)
        entries = unpacked_list(cell) if isinstance(cell, str) else cell
        for entry in entries if isinstance(entries, list | tuple) else ():
            listed = unpacked_list(entry) if isinstance(entry, str) else None
            if listed and not is_of_numbers(listed):
                return [
                    (
                        f"column {column}: {entry[:60]!r} is an entry of a list, looks like a list itself, and is read as "
                        "one text; if it stands for several, write the list as text only once"
                    )
                ]
    return []


def _unsplit(column: str, cells: Sequence[str], reading: CellReading) -> list[str]:
    """A note where most cells look like lists that nothing splits."""
    whole = [cell for cell in cells if unpacked_list(cell) is None]
    if reading.separator or not whole or len(whole) * 2 <= len(cells):
        return []
    forms = [
        ([cell for cell in whole if sign in cell.strip(sign)], f"give --reference-separator '{sign}'")
        for sign in _SEPARATORS
    ]
    unread = [cell for cell in whole if cell[0] + cell[-1] == "[]"]
    for looking, way_out in [*forms, (unread, "in a form that cannot be read: write them as JSON")]:
        if len(looking) * 2 > len(whole):
            example = f"{looking[0][:60]!r}; {way_out}"
            return [
                f"column {column}: most cells look like lists and are read as one text each, for instance {example}"
            ]
    return []
