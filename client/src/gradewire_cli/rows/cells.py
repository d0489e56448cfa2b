"""Read human labels and other cells, and report values that table libraries or spreadsheets changed."""

from __future__ import annotations

import json
import math
import re
import reprlib
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from gradewire._rows import UnreadableValueError, is_missing, is_of_numbers, plain, text_of, texts_of, unpacked_list
from gradewire_cli.problems import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from gradewire_cli.rows.formats import Record

_PLURAL: Final = re.compile(r"s\b")
_WORDS = {
    **dict.fromkeys(("true", "yes", "correct", "right"), 1.0),
    **dict.fromkeys(("false", "no", "incorrect", "wrong"), 0.0),
}
NO_WORDS: Mapping[str, float] = {}
_NO_CHOICES: Final = frozenset({
    "", "-", "?", "nan", "none", "null", "na", "n/a", "<na>", "nat", "unknown", "unclear", "undefined", "undecided",
    "no winner", "no_winner", "no verdict", "no_verdict", "no decision", "invalid", "missing", "error", "failed",
    "failure", "unparsable", "unparseable", "timeout",
})  # fmt: skip
"""Words for a choice that nobody made, because it is missing or a judge failed. None of them means a tie."""

_SPREADSHEET_ERROR: Final = re.compile(r"\A(#(REF!|NAME\?|VALUE!|DIV/0!|NUM!|NULL!|SPILL!|CALC!)|#{3,})\Z")
WHOLE_FLOAT: Final = re.compile(r"\A-?\d+\.0\Z")
_FLOAT: Final = re.compile(r"\A-?\d+\.(0|\d*[1-9])\Z")
_BROKEN_LIST: Final = re.compile(r"""\A\[\s*(['"]|nan\b|None\b|np\.).*\]\Z""", re.DOTALL)

MOST_VOTES: Final = 1000
_CHUNK_ROWS: Final = 1024
_SHOWN: Final = 60
_MAYBE_MISSING: Final = frozenset({"None", "none", "null", "NA", "N/A", "n/a", "-"})
_MONTHS: Final = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
_CHANGED: Final = {
    "date that a spreadsheet made": re.compile(
        rf"\A(\d{{1,2}}-({_MONTHS})|({_MONTHS})-\d{{2}}|\d{{4}}-\d\d-\d\d[ T]00:00:00)\Z", re.IGNORECASE
    ),
    "number that a spreadsheet rounded": re.compile(r"\A-?\d([.,]\d+)?E[+-]\d+\Z", re.IGNORECASE),
}
_SEPARATORS: Final = {"||": 0.0, "|": 0.0, "<sep>": 0.0, ";": 0.25, " / ": 0.5, ",": 0.5, "\n": 0.5}
"""Possible separators between references, each with a share of cells. If more cells contain it, a note appears."""
_ENTITY: Final = re.compile(r"&#?\w+;")
_ARRAY: Final = re.compile(r"\A(\{[^{}:]*\}|\[.*\]|\d+ +\S.*\ndtype: \w+)\Z", re.DOTALL)
"""Lists that are not JSON, such as a database's lists, and series printed by table libraries."""
_TRUTH: Final = frozenset({"True", "False", "TRUE", "FALSE"})


@dataclass(slots=True)
class LeftOut:
    """Numbers of skipped rows by reason, and the position of the first row with each reason."""

    counts: Counter[str] = field(default_factory=Counter)
    first: dict[str, str] = field(default_factory=dict)

    def add(self, reason: str, place: str) -> None:
        """Count a skipped row at `place`."""
        self.counts[reason] += 1
        self.first.setdefault(reason, place)

    def sentences(self, what: str) -> list[str]:
        """Return a sentence for each reason. `what` is a plural noun such as "rows"."""
        one = _PLURAL.sub("", what, count=1)
        return [
            f"left out {count} {one if count == 1 else what}: {reason} (first at {self.first[reason]})"
            for reason, count in self.counts.items()
        ]


@dataclass(frozen=True, slots=True)
class HumanLabel:
    """The labels of a row.

    Attributes:
        value: The row's own label, or the mean of the annotators' labels. None means that the label is missing or
            unreadable.
        annotations: Each annotator's label, or () if the row does not list annotators. None means a missing label.
        unreadable: The value that is not a label, or "".
    """

    value: float | None = None
    annotations: tuple[float | None, ...] = ()
    unreadable: str = ""


def read_label_map(text: str) -> dict[str, float]:
    """Parse --label-map (WORD=NUMBER,WORD=NUMBER) with words in lower case; raise InputError for a wrong format."""
    words = {}
    for pair in filter(None, text.split(",")):
        word, equals, number = pair.rpartition("=")
        try:
            value = float(number)
        except ValueError:
            value = math.nan
        if not equals or not word.strip() or not math.isfinite(value):
            raise InputError(f"--label-map {text}: write WORD=NUMBER,WORD=NUMBER, for example correct=1,partly=0.5")
        words[word.strip().lower()] = value
    return words


def read_labels(own: Any, listed: Any, words: Mapping[str, float] = NO_WORDS) -> HumanLabel:
    """Read a row's labels from two cells: `own` contains the row's label, and `listed` the annotators' labels."""
    read = []
    for cell in (own, listed):
        try:
            read.append(_read(cell, words))
        except (ValueError, OverflowError, RecursionError):
            return HumanLabel(unreadable=reprlib.repr(cell))
    value, annotations = read[0], _listed(read[1])
    if isinstance(value, list):
        annotations, value = annotations or tuple(value), None
    known = [label for label in annotations if label is not None]
    if value is None and known:
        value = sum(known) / len(known)
        if not math.isfinite(value):
            return HumanLabel(unreadable=reprlib.repr(annotations))
    return HumanLabel(value, annotations if known else ())


def _listed(read: float | list[float | None] | None) -> tuple[float | None, ...]:
    if isinstance(read, list):
        return tuple(read)
    return () if read is None else (read,)


def _read(cell: Any, words: Mapping[str, float]) -> float | list[float | None] | None:
    cell = plain(cell)
    if isinstance(cell, str) and (unpacked := unpacked_list(cell)) is not None:
        cell = unpacked
    return [_number(entry, words) for entry in cell] if isinstance(cell, list) else _number(cell, words)


def _number(value: Any, words: Mapping[str, float]) -> float | None:
    """Convert a label to a number. Return None for a missing label.

    Raises:
        ValueError, OverflowError: The label is not a finite number.
    """
    value = plain(value)
    text = str(value).strip().lower()
    if not text or is_missing(value):
        return None
    # Table libraries write the grade 4 as 4.0, and true as 1.0, if another row has no grade.
    named = words.get(text, words.get(text.removesuffix(".0")))
    if named is not None:
        return named
    if _is_number(text) and any(map(_is_number, words)):
        raise ValueError("a grade that --label-map leaves out")
    if isinstance(value, str):
        value = _WORDS.get(text, text)
    number = float(value) if isinstance(value, str | int | float) else math.nan
    if not math.isfinite(number):
        raise ValueError("a label must be a finite number")
    return number


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def listed_votes(cell: Any) -> list[Any]:
    """Return the votes in a cell: a list, a string, or counts by vote; raise ValueError if a count is invalid."""
    if isinstance(cell, dict):
        if not all(type(count) is int and 0 <= count <= MOST_VOTES for count in cell.values()):
            raise ValueError("a count of votes is invalid")
        return [vote for vote, count in cell.items() for _ in range(count)]
    if isinstance(cell, str):
        return cell.replace(",", " ").split()
    return cell if isinstance(cell, list) else []


def is_no_choice(value: Any) -> bool:
    """Return True if a winner, vote or choice is missing, or if its word says that nobody chose."""
    return is_missing(value) or (isinstance(value, str) and value.strip().lower() in _NO_CHOICES)


def unpacked(cell: Any, *, brackets: str = "[") -> Any:
    """Parse a cell that starts with one of `brackets` or is a list. Return other cells unchanged."""
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
    """Rules for reading the cells of one file.

    Attributes:
        only_texts: True if the format has only text cells, like CSV.
        missing: Additional words for a missing value.
        whole_number_columns: Columns with whole numbers written like 2.0.
    """

    only_texts: bool = False
    separator: str = ""
    missing: Collection[str] = ()
    whole_number_columns: Collection[str] = field(default_factory=frozenset)

    def value(self, column: str, value: Any) -> Any:
        """Return a cell's value, or None if missing; raise UnreadableValueError for a spreadsheet's error."""
        if is_missing(value):
            return None
        if not isinstance(value, str):
            return value
        text = value.strip() if self.only_texts else value
        if value in self.missing or text in self.missing:
            return None
        if not self.only_texts:
            return value
        if _SPREADSHEET_ERROR.match(text):
            raise UnreadableValueError(f" is {text}, a spreadsheet's error. Correct it in the spreadsheet")
        return text.removesuffix(".0") if column in self.whole_number_columns and WHOLE_FLOAT.match(text) else value

    def text(self, column: str, value: Any) -> str | None:
        """Return a cell as a string; raise UnreadableValueError if the cell could mean several strings."""
        return text_of(self.value(column, value))

    def texts(self, column: str, value: Any) -> list[str | None] | None:
        """Return the strings in a cell that may contain a list; raise UnreadableValueError if the cell is ambiguous."""
        value = self.value(column, value)
        if value == "" and self.only_texts:
            return []
        listed = unpacked_list(value) if isinstance(value, str) else None
        if self.only_texts and listed is None and isinstance(value, str) and _BROKEN_LIST.match(value.strip()):
            raise UnreadableValueError(f" is an unreadable list ({value.strip()[:40]}…). Write it as JSON")
        if self.separator and isinstance(value, str) and listed is None:
            return [part.strip() for part in value.split(self.separator) if part.strip()]
        return texts_of(listed if listed is not None and self.only_texts else value)


def reading_of(rows: Sequence[Mapping[str, Any]], columns: Iterable[str], options: CellReading) -> CellReading:
    """Return `options` with the columns that contain whole numbers in `rows`, the first rows of a file."""
    whole = frozenset(column for column in columns if options.only_texts and _is_whole(rows, column))
    return CellReading(options.only_texts, options.separator, options.missing, whole)


def _is_whole(rows: Sequence[Mapping[str, Any]], column: str) -> bool:
    cells = [cell.strip() for row in rows if isinstance(cell := row.get(column), str)]
    there = [cell for cell in cells if cell]
    return any(map(WHOLE_FLOAT.match, there)) and all(map(_FLOAT.match, there))


class _Column(NamedTuple):
    """A column in some rows: all its values, and its non-empty strings without surrounding blanks."""

    name: str
    values: Sequence[Any]
    texts: Sequence[str]


@dataclass(slots=True)
class CellNotes:
    """Notes on the cells of one file.

    Attributes:
        lists: Columns whose cells may contain a list.
        texts: Other scored columns, starting with the prediction.
        late: Sentences about rows that `watched` has yielded.
    """

    lists: Sequence[str]
    texts: Sequence[str]
    reading: CellReading
    late: list[str] = field(default_factory=list)
    _reported: set[tuple[str, str]] = field(default_factory=set)

    def on(self, rows: Sequence[Mapping[str, Any]]) -> list[str]:
        """Return notes on these rows. Each type of note appears at most once per column."""
        every = [_column(name, rows) for name in (*self.lists, *self.texts)]
        lists, texts = every[: len(self.lists)], every[len(self.lists) :]
        references = {text.capitalize() for column in lists for text in column.texts}
        looks: list[tuple[str, Sequence[_Column], Callable[[_Column], str]]] = [
            ("point", every, self._points),
            ("unsplit", lists, self._unsplit_lists),
            ("split", lists, self._split_answers),
            ("nested", lists, _nested_lists),
            ("listed", texts, _listed_text),
            ("truth", [] if references <= {"True", "False"} else texts, self._truth_values),
            ("missing", every, self._missing),
            *((name, every, partial(_changed, name, pattern)) for name, pattern in _CHANGED.items()),
        ]
        notes = []
        for kind, columns, look in looks:
            for column in columns:
                if (column.name, kind) not in self._reported and (text := look(column)):
                    self._reported.add((column.name, kind))
                    notes.append(f"column {column.name}: {text}")
        return notes

    def watched(self, records: Iterable[Record], is_wanted: Callable[[Mapping[str, Any]], bool]) -> Iterator[Record]:
        """Yield the records unchanged, and add notes on the wanted records to `late`."""
        rows: list[Mapping[str, Any]] = []
        for record in records:
            yield record
            if record.fields is not None and is_wanted(record.fields):
                rows.append(record.fields)
            if len(rows) == _CHUNK_ROWS:
                self.late += self.on(rows)
                rows.clear()
        self.late += self.on(rows)

    def _points(self, column: _Column) -> str:
        example = next(filter(WHOLE_FLOAT.match, column.texts), "") if self.reading.only_texts else ""
        if not example:
            return ""
        is_whole = column.name in self.reading.whole_number_columns
        way_out = "left unchanged, because other cells are not whole numbers. Write all cells in the references' format"
        return f'whole numbers are written as "{example}" and ' + ('read without ".0"' if is_whole else way_out)

    def _unsplit_lists(self, column: _Column) -> str:
        if self.reading.separator:
            return ""
        texts = column.texts
        whole = [_ENTITY.sub("", cell) for cell in texts if unpacked_list(cell) is None and not _is_object(cell)]
        ways = [
            ([cell for cell in whole if sign in cell.strip(sign)], share, f"use --reference-separator {sign!r}")
            for sign, share in _SEPARATORS.items()
        ]
        for looking, share, way_out in [(list(filter(_ARRAY.match, whole)), 0.5, "write them as JSON"), *ways]:
            if len(looking) > share * len(texts):
                example = f"{len(looking)} of {len(texts)} cells, for instance {looking[0][:_SHOWN]!r}"
                return f"{example}, look like lists but are read as one string each. If they are lists, {way_out}"
        return ""

    def _split_answers(self, column: _Column) -> str:
        for cell in column.texts:
            # A cell in brackets may be an answer if the format has its own lists, or if the cell contains only numbers.
            listed = unpacked_list(cell)
            if listed and is_of_numbers(listed) == self.reading.only_texts:
                way_out = f"If it is one answer, write it as a list of one string: {json.dumps([cell])[:80]}"
                return f"{cell[:_SHOWN]!r} is read as {len(listed)} references. {way_out}"
        return ""

    def _truth_values(self, column: _Column) -> str:
        if not self.reading.only_texts or not column.texts or not _TRUTH.issuperset(column.texts):
            return ""
        return 'truth values are read as the words "True" and "False". Write these words in the references\' format'

    def _missing(self, column: _Column) -> str:
        words = sorted(_MAYBE_MISSING.intersection(column.texts).difference(self.reading.missing))
        if not words:
            return ""
        read, way_out = ", ".join(f'"{word}"' for word in words), " ".join(f"--missing {word}" for word in words)
        return f"{read} is read as an answer. If it means a missing value, use {way_out}"


def _column(name: str, rows: Sequence[Mapping[str, Any]]) -> _Column:
    values = [row.get(name) for row in rows]
    stripped = (value.strip() for value in values if isinstance(value, str))
    return _Column(name, values, list(filter(None, stripped)))


def _nested_lists(column: _Column) -> str:
    for cell in column.values:
        entries = unpacked_list(cell) if isinstance(cell, str) else cell
        texts = [entry for entry in entries if isinstance(entry, str)] if isinstance(entries, list) else []
        if example := next(filter(_is_list_of_texts, texts), ""):
            read = f"{example[:_SHOWN]!r} is a list entry that looks like a list, but is read as one string"
            return f"{read}. If it contains several strings, convert the list to text only once"
    return ""


def _listed_text(column: _Column) -> str:
    example = next((cell for cell in column.texts if _is_list_of_texts(cell) or _is_object(cell)), "")
    return f"{example[:_SHOWN]!r} looks like a list or an object, but is read as one string" if example else ""


def _changed(name: str, pattern: re.Pattern[str], column: _Column) -> str:
    example = next(filter(pattern.match, column.texts), "")
    return f"{example!r} looks like a {name}. Format these cells as text first" if example else ""


def _is_list_of_texts(text: str) -> bool:
    return bool((listed := unpacked_list(text)) and not is_of_numbers(listed))


def _is_object(text: str) -> bool:
    return bool(re.match(r"""\{\s*['"]\w+['"]\s*:""", text))
