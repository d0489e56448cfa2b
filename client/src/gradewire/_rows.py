"""Read users' rows: field names, lists in cells, and tables, without importing table libraries."""

import ast
import contextlib
import json
import math
import re
import string
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final, Protocol, TypeAlias, TypeGuard

from gradewire._columns import key_columns
from gradewire.errors import InvalidRequest

_MAX_CHARACTERS: Final = 1 << 20
"""Maximum length of a cell to parse, because Python's parser needs a hundred times the cell's size in memory."""
_MAX_DEPTH: Final = 8
_ARRAY: Final = re.compile(r"\A(?:np\.|numpy\.)?array\((.*?)(?:,\s*dtype=[\w.'<>|]+)?\)\Z", re.DOTALL)
# A quoted string with Python's escapes. numpy prints no comma between two strings.
_QUOTED: Final = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""", re.DOTALL)
_OBJECT: Final = re.compile(r"""\A\{\s*['"](text|answer)['"]\s*:.*\}\Z""", re.DOTALL)
_NUMBERS: Final = re.compile(r"\[\s*-?\d+(\.\d*)?(\s+-?\d+(\.\d*)?)*\s*\]")
_SCALAR: Final = re.compile(r"""\bnp\.(?:str_|float\d+|u?int\d+)\((-?[\d.]+|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")\)""")
_ARRAY_INSIDE: Final = re.compile(r"""\barray\((\[[^\]]*\])(?:,\s*dtype=[\w.'<>|]+)?\)""")
_QUOTED_ONLY: Final = re.compile(r"\[Q+\]")

_TEXT_KEYS: Final = ("text", "answer")
"""Keys of the answer's text if an answer is an object (in the data sets SQuAD and VQA)."""
_LONG_CHARACTERS: Final = 14
_LEAST_PLAIN: Final = 1e-9
_MOST_PLAIN: Final = 1e24
"""Numbers of at least `_LEAST_PLAIN` and less than `_MOST_PLAIN` are written without an exponent."""

TEXT_FIELDS: Final = ("id", "question", "prediction", "caption", "group")
LIST_FIELDS: Final = ("references", "synthetic_answers", "captions", "choices")
TRUTH_FIELDS: Final = ("answerable",)
_TRUTH_VALUES: Final[Mapping[str, bool]] = {
    **dict.fromkeys(("true", "yes", "1", "1.0"), True),
    **dict.fromkeys(("false", "no", "0", "0.0"), False),
}

_METHODS = ("iter_rows", "itertuples", "to_batches", "read_next_batch", "to_pylist")


def unpacked_list(cell: str) -> list[Any] | None:
    """Return the list in a cell, or None if the cell is not a complete list.

    The cell may contain JSON, a printed Python list (also with numpy scalars), a printed tuple or set of strings, or a
    printed numpy array of strings or numbers.
    """
    text = cell.strip()
    if array := _ARRAY.match(text):
        text = array[1].strip()
    if text[:1] + text[-1:] not in {"[]", "()", "{}"} or len(text) > _MAX_CHARACTERS:
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = _printed_list(text)
    if isinstance(value, tuple | list) and _depth(value) <= _MAX_DEPTH:
        return list(value)
    return None


def is_of_numbers(listed: Sequence[Any]) -> bool:
    """Return True if a list contains only numbers. The list may then be a single answer."""
    return bool(listed) and all(isinstance(entry, int | float) for entry in listed)


def unpacked_object(cell: str) -> dict[Any, Any] | None:
    """Parse a cell with an answer's JSON object or printed dict. Return None for other cells.

    Raises:
        ValueError: The object cannot be parsed. The message continues a sentence that starts with the field's name.
    """
    text = cell.strip()
    if not _OBJECT.match(text) or len(text) > _MAX_CHARACTERS:
        return None
    # In a long array, numpy prints "..." instead of the middle, so the cell lacks values.
    printed = text if "..." in text else _ARRAY_INSIDE.sub(r"\1", text)
    for read, said in ((json.loads, text), (ast.literal_eval, text), (ast.literal_eval, printed)):
        with contextlib.suppress(ValueError, SyntaxError, MemoryError, RecursionError):
            value = read(said)
            if isinstance(value, dict):
                return value
    raise ValueError(f" is an object that cannot be parsed ({text[:40]}…): write the answers as a JSON list")


def _printed_list(text: str) -> list[Any] | tuple[str, ...] | None:
    if _NUMBERS.fullmatch(text):
        return [float(number) if "." in number else int(number) for number in text[1:-1].split()]
    value = _python_list(text)
    return _python_list(_SCALAR.sub(r"\1", text)) if value is None and "np." in text else value


def _python_list(text: str) -> list[Any] | tuple[str, ...] | None:
    try:
        # Python joins adjacent string literals, which would turn a printed numpy array into a single answer.
        outside = "".join(_QUOTED.sub("Q", text).split())
        if _QUOTED_ONLY.fullmatch(outside):
            return [ast.literal_eval(found[0].replace("\n", "\\n")) for found in _QUOTED.finditer(text)]
        value = None if "QQ" in outside else ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):  # TypeError: a set of lists
        return None
    if isinstance(value, list):
        return value
    # "(1, 2)" and "{1, 2}" are answers, such as a point, an interval or a set.
    if isinstance(value, tuple | set) and all(isinstance(entry, str) for entry in value):
        return sorted(value) if isinstance(value, set) else value
    return None


def _depth(value: Any) -> int:
    return 1 + max(map(_depth, value), default=0) if isinstance(value, list | tuple) else 0


class UnreadableValueError(ValueError):
    """Raised when a value is not text.

    The message continues a sentence that starts with the field's name: " is a date: …".
    """


def is_missing(value: object) -> bool:
    """Return True for the value of an empty cell: None, or a table library's NaN, NaT or <NA>."""
    if value is None or type(value).__name__ in {"NAType", "NaTType"}:
        return True
    return isinstance(value, float) and math.isnan(value)


def plain(value: Any) -> Any:
    """Convert a scalar or array of numpy or Arrow to a Python value."""
    if isinstance(value, str | bytes | int | float | list | tuple | Mapping) or value is None:
        return value
    for name in ("as_py", "tolist"):
        if callable(convert := getattr(value, name, None)):
            return convert()
    return value


def text_of(value: Any) -> str | None:
    """Return a value as a string, or None if the value is missing.

    A whole number stored as a float is written without ".0", because table libraries turn 2 into 2.0 if the column has
    an empty cell.

    Raises:
        UnreadableValueError: The value is not text, or could be written in several ways.
    """
    value = plain(value)
    if isinstance(value, str) or is_missing(value):
        return None if value is None or not isinstance(value, str) else value
    if isinstance(value, bool):
        raise UnreadableValueError(
            f" is {value}, a truth value: write a string like the other answers, such as "
            f'"{"yes" if value else "no"}" or "{str(value).lower()}"'
        )
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        if math.isinf(value):
            raise UnreadableValueError(f" is {value}: give a string or a finite number")
        return str(int(value)) if value.is_integer() and abs(value) < 2**53 else _digits(value)
    if isinstance(value, Decimal | Fraction):
        return str(value)
    if isinstance(value, bytes | bytearray | memoryview):
        raise UnreadableValueError(" is bytes: give a string")
    if callable(getattr(value, "isoformat", None)):
        raise UnreadableValueError(
            f" is a {type(value).__name__} ({value}): dates can be written in many ways, so give a string"
        )
    raise UnreadableValueError(f" is {kind_of(value)}: give a string")


def kind_of(value: object) -> str:
    """Return a value's type for a sentence: "a list", "an int", "None"."""
    name = type(value).__name__
    return "None" if value is None else f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"


def _digits(value: float) -> str:
    """Return the shortest decimal for a number. Only tiny and huge numbers have an exponent."""
    text = repr(value)
    # Some tables store single-precision numbers as doubles, for example 3.3 as 3.299999952316284. A true double hardly
    # ever has a value that single precision can represent.
    if len(text) > _LONG_CHARACTERS and _single(value) == struct.pack("d", value):
        shorter = (f"{value:.{digits}g}" for digits in range(6, 10))
        text = next(short for short in shorter if _single(float(short)) == _single(value))
    return f"{Decimal(text):f}" if _LEAST_PLAIN <= abs(value) < _MOST_PLAIN else text


def _single(value: float) -> bytes:
    """Return a number rounded to single precision, packed as a double. If the number is too large, return b""."""
    try:
        return struct.pack("d", *struct.unpack("f", struct.pack("f", value)))
    except OverflowError:
        return b""


def truth_of(value: Any) -> bool | None:
    """Return a truth value, which may be a string such as "false" or a number, or None if the value is missing.

    Raises:
        UnreadableValueError: The value is no truth value.
    """
    value = plain(value)
    if is_missing(value) or value == "":
        return None
    found = _TRUTH_VALUES.get(str(value).strip().lower())
    if found is None:
        raise UnreadableValueError(f" is {str(value)[:40]!r}: give true or false")
    return found


def default_references(values: dict[str, Any]) -> None:
    """Replace missing or blank references with an empty list in the values of a question that has no answer."""
    references = values.get("references") or ()
    if values.get("answerable") is False and not any(text and text.strip() for text in references):
        values["references"] = []


def choices_of(value: Any) -> Any:
    """Return the texts of choices that are an object with the letters A, B, C as keys; return other values as is."""
    value = plain(value)
    if not isinstance(value, Mapping) or len(value) < 2:
        return value
    letters = string.ascii_uppercase[: len(value)]
    return list(value.values()) if "".join(map(str, value)) == letters else value


def texts_of(value: Any) -> list[str | None] | None:
    """Return the strings in a list field's value, or None if the value is missing.

    A single string or number becomes a list with one entry. A string that contains a list, for example from
    `pandas.read_csv`, is parsed. An answer may be an object that contains the text (in the data sets SQuAD and VQA).

    Raises:
        UnreadableValueError: The value is not a list of strings. If an entry is wrong, the message begins with the
            entry's index: "[2] is …".
    """
    value = plain(value)
    if isinstance(value, str):
        value = _in_text(value)
    if isinstance(value, Mapping):
        value = _in_object(value)
    if is_missing(value):
        return None
    if not isinstance(value, list | tuple):
        value = [value]
    return [_entry(position, entry) for position, entry in enumerate(value)]


def _in_text(cell: str) -> list[Any] | Mapping[Any, Any]:
    # "[0, 1]" may be a single answer, such as an interval or a list in code, so do not parse the string.
    if (listed := unpacked_list(cell)) is not None and not is_of_numbers(listed):
        return listed
    try:
        found = unpacked_object(cell)
    except ValueError as error:
        raise UnreadableValueError(str(error)) from None
    return [cell] if found is None else found


def _entry(position: int, entry: Any) -> str | None:
    entry = plain(entry)
    if isinstance(entry, Mapping):
        entry = plain(_in_object(entry, position))
    if isinstance(entry, list | tuple):
        raise UnreadableValueError(f"[{position}] is a list in a list: give a list of strings")
    try:
        return text_of(entry)
    except UnreadableValueError as error:
        raise UnreadableValueError(f"[{position}]{error}") from None


def _in_object(value: Mapping[Any, Any], position: int | None = None) -> Any:
    found = [value[key] for key in _TEXT_KEYS if key in value]
    if len(found) != 1:
        place = "" if position is None else f"[{position}]"
        keys = ", ".join(sorted(map(str, value))) or "none"
        raise UnreadableValueError(f"{place} is an object with the keys {keys}: give a list of strings")
    return plain(found[0])


def field_values(row: Mapping[Any, Any], names: Sequence[str]) -> dict[str, Any]:
    """Return a row's values by field name, without None values.

    Raises:
        AmbiguousColumnsError: Several keys could contain the references or the prediction.
    """
    values = {}
    for name, columns in key_columns(tuple(row), tuple(names)).items():
        for column in columns:
            if (value := row[column]) is not None:
                values[name] = value
                break
    return values


def column_of(row: Mapping[Any, Any], names: Sequence[str], name: str) -> str:
    """Return the key under which a row has one of the fields `names`, or `name` if the row lacks the field."""
    return next(iter(key_columns(tuple(row), tuple(names))[name]), name)


def as_texts(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values as strings, lists of strings and truth values, without missing values.

    Raises:
        UnreadableValueError: A value is not text. The message starts with the field's name: "references[1] is a date".
    """
    texts: dict[str, Any] = {}
    for name, value in values.items():
        try:
            text = _value_of(name, value)
        except UnreadableValueError as error:
            raise UnreadableValueError(f"{name}{error}") from None
        if isinstance(text, list) and None in text:
            raise UnreadableValueError(f"{name}[{text.index(None)}] is missing (None or NaN): remove this entry")
        if text is not None:
            texts[name] = text
    return texts


def _value_of(name: str, value: Any) -> Any:
    if name in TRUTH_FIELDS:
        return truth_of(value)
    if name in LIST_FIELDS:
        return texts_of(choices_of(value) if name == "choices" else value)
    return text_of(value)


class PandasTable(Protocol):
    """`pandas.DataFrame`."""

    @property
    def columns(self) -> Iterable[Any]: ...
    def itertuples(self, *, index: bool, name: None) -> Iterable[tuple[Any, ...]]: ...


class PolarsTable(Protocol):
    """`polars.DataFrame`."""

    def iter_rows(self, *, named: Any) -> Iterator[Any]: ...


class ArrowArray(Protocol):
    """A `pyarrow.RecordBatch`, a `pyarrow.StructArray`, or a `pyarrow.ChunkedArray` of structs."""

    def to_pylist(self) -> list[Any]: ...


class ArrowTable(Protocol):
    """`pyarrow.Table`, `pyarrow.dataset.Dataset`."""

    def to_batches(self) -> Iterable[Any]: ...


class ArrowReader(Protocol):
    """`pyarrow.RecordBatchReader`."""

    def read_next_batch(self) -> Any: ...
    def __iter__(self) -> Iterator[Any]: ...


Table: TypeAlias = PandasTable | PolarsTable | ArrowTable | ArrowReader | ArrowArray


def is_table(source: object) -> TypeGuard[Table]:
    # Check the type, because some libraries' objects have every attribute, or compute attributes on access.
    return any(callable(getattr(type(source), method, None)) for method in _METHODS)


def table_rows(name: str, table: Any) -> Iterator[Mapping[str, Any]]:
    """Return a lazy iterator over a table's rows, as mappings by column name.

    Raises:
        InvalidRequest: Two columns of the table have the same name.
    """
    kind = type(table)
    if hasattr(kind, "iter_rows"):
        return iter(table.iter_rows(named=True))
    if hasattr(kind, "itertuples"):
        columns = _distinct(name, map(str, table.columns))
        return (dict(zip(columns, row, strict=True)) for row in table.itertuples(index=False, name=None))
    if hasattr(kind, "to_pylist") and not hasattr(kind, "schema"):
        return iter(table.to_pylist())
    if hasattr(kind, "to_batches"):
        return _arrow_rows(name, table.to_batches())
    return _arrow_rows(name, table if hasattr(kind, "read_next_batch") else (table,))


def _arrow_rows(name: str, batches: Iterable[Any]) -> Iterator[Mapping[str, Any]]:
    for batch in batches:
        _distinct(name, batch.schema.names)
        yield from batch.to_pylist()


def _distinct(name: str, columns: Iterable[str]) -> list[str]:
    listed = list(columns)
    if repeated := sorted({column for column in listed if listed.count(column) > 1}):
        raise InvalidRequest(f"{name} has more than one column {repeated[0]!r}: rename or remove one of them")
    return listed
