"""What the cells of a file mean where table libraries and spreadsheets have changed them.

Files of text alone (CSV) have no lists, no missing values and no whole numbers beside missing ones; what stands for
these is read back. What cannot be told is left as it is; `cell_notes` tells people of it.
"""

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from gradewire._input.cells import unpacked_list
from gradewire._input.values import UnreadableValueError, is_missing, text_of, texts_of

_SPREADSHEET_ERROR: Final = re.compile(r"\A(#(REF!|NAME\?|VALUE!|DIV/0!|NUM!|NULL!|SPILL!|CALC!)|#{3,})\Z")
WHOLE: Final = re.compile(r"\A-?\d+\.0\Z")
"""A whole number as a table library writes it in a column of floats."""
_FLOAT: Final = re.compile(r"\A-?\d+\.(0|\d*[1-9])\Z")
_BROKEN_LIST: Final = re.compile(r"""\A\[\s*(['"]|nan\b|None\b|np\.).*\]\Z""", re.DOTALL)


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
        whole: Columns of numbers whose whole ones are written as 2.0.
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
        return text.removesuffix(".0") if column in self.whole and WHOLE.match(text) else value

    def text(self, column: str, value: Any) -> str | None:
        """The text of a cell; raises UnreadableValueError where it has none that is certain."""
        return text_of(self.value(column, value))

    def texts(self, column: str, value: Any) -> list[str | None] | None:
        """The texts of a cell that may hold several; raises UnreadableValueError where they are not certain."""
        value = self.value(column, value)
        if value == "" and self.only_texts:
            return []
        listed = unpacked_list(value) if isinstance(value, str) else None
        if self.only_texts and listed is None and isinstance(value, str) and _BROKEN_LIST.match(value.strip()):
            raise UnreadableValueError(f" is a list that cannot be read ({value.strip()[:40]}…): write it as JSON")
        if self.separator and isinstance(value, str) and listed is None:
            return [part.strip() for part in value.split(self.separator) if part.strip()]
        return texts_of(listed if listed is not None and self.only_texts else value)


def reading_of(rows: Sequence[Mapping[str, Any]], columns: Iterable[str], options: CellReading) -> CellReading:
    """What the first rows of a file tell of all: which columns are of numbers that a table library made floats."""
    whole = frozenset(column for column in columns if options.only_texts and _is_whole(rows, column))
    return CellReading(options.only_texts, options.separator, options.missing, whole)


def _is_whole(rows: Sequence[Mapping[str, Any]], column: str) -> bool:
    cells = [cell.strip() for row in rows if isinstance(cell := row.get(column), str)]
    there = [cell for cell in cells if cell]
    return any(map(WHOLE.match, there)) and all(map(_FLOAT.match, there))
