"""What a value of any table library says as text.

Nothing is guessed in silence: where a text could be written in several ways that would be scored differently, the value
is refused with what to do. No library is imported; numpy's scalars and arrays tell what they hold by `tolist`, Arrow's
by `as_py`.
"""

import math
import struct
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

from gradewire._input.cells import is_of_numbers, unpacked_list, unpacked_object

_TEXT_KEYS: Final = ("text", "answer")
"""Under one of these an answer stands where answers are objects: of SQuAD, of VQA."""
_LONG_CHARACTERS: Final = 14
_LEAST_PLAIN: Final = 1e-9
_MOST_PLAIN: Final = 1e24
"""Numbers from the one to the other are written without an exponent."""


class UnreadableValueError(ValueError):
    """A value is no text; the message goes on from the name of its field: " is a date: …"."""


def is_missing(value: object) -> bool:
    """Whether a cell says that there is nothing: None, and what table libraries write for it (NaN, NaT, <NA>)."""
    if value is None or type(value).__name__ in {"NAType", "NaTType"}:
        return True
    return isinstance(value, float) and math.isnan(value)


def plain(value: Any) -> Any:
    """A value as Python has it: numpy's and Arrow's scalars and arrays are no others to people."""
    if isinstance(value, str | bytes | int | float | list | tuple | Mapping) or value is None:
        return value
    for name in ("as_py", "tolist"):
        if callable(convert := getattr(value, name, None)):
            return convert()
    return value


def text_of(value: Any) -> str | None:
    """The text that a value stands for; None where it is missing.

    A whole number that a table library holds as a float is written without ".0": it made 2 into 2.0 because another
    row has none.

    Raises:
        UnreadableValueError: It is no text, or could be written in several ways.
    """
    value = plain(value)
    if isinstance(value, str) or is_missing(value):
        return None if value is None or not isinstance(value, str) else value
    if isinstance(value, bool):
        raise UnreadableValueError(
            f" is {value}, a truth value: write it as the other answers have it, for instance "
            f'"{"yes" if value else "no"}" or "{str(value).lower()}"'
        )
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        if math.isinf(value):
            raise UnreadableValueError(f" is {value}: give a text or a finite number")
        return str(int(value)) if value.is_integer() and abs(value) < 2**53 else _digits(value)
    if isinstance(value, Decimal | Fraction):
        return str(value)
    if isinstance(value, bytes | bytearray | memoryview):
        raise UnreadableValueError(" is bytes: give a string")
    if callable(getattr(value, "isoformat", None)):
        raise UnreadableValueError(
            f" is a {type(value).__name__} ({value}): dates have many forms, so give a string, as answers say it"
        )
    raise UnreadableValueError(f" is a {type(value).__name__}: give a string")


def _digits(value: float) -> str:
    """The shortest decimal that is this number, without an exponent where people would write none."""
    text = repr(value)
    # Tables give numbers of single precision in double: 3.299999952316284 for 3.3. By chance no double is one of both.
    if len(text) > _LONG_CHARACTERS and _single(value) == struct.pack("d", value):
        shorter = (f"{value:.{digits}g}" for digits in range(6, 10))
        text = next(short for short in shorter if _single(float(short)) == _single(value))
    return f"{Decimal(text):f}" if _LEAST_PLAIN <= abs(value) < _MOST_PLAIN else text


def _single(value: float) -> bytes:
    """The nearest number of single precision; empty where there is none."""
    try:
        return struct.pack("d", *struct.unpack("f", struct.pack("f", value)))
    except OverflowError:
        return b""


def texts_of(value: Any) -> list[str | None] | None:
    """The texts that a value of references stands for; None where it is missing.

    One text or number is a list of one; a text that holds a list of texts, as `pandas.read_csv` gives it, is that list.
    Answers may be objects with their text, as SQuAD and VQA have them.

    Raises:
        UnreadableValueError: It is no list of texts; of one entry the message begins with its place: "[2] is …".
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
    # "[0, 1]" is an answer: an interval, a list of code. Only a file of texts alone has no other way to write a list.
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
