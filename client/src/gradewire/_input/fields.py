"""Fields of an item or an entry, found in a mapping under their own or another usual name, as texts."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from gradewire._input.aliases import ALIASES, LIST_FIELDS
from gradewire._input.values import UnreadableValueError, text_of, texts_of

_MAIN_FIELDS: Final = ("references", "prediction", "question")


def found_values(row: Mapping[Any, Any], names: Sequence[str]) -> dict[str, Any]:
    """Values of fields that a row has, by the fields' own names; those that are None are left out.

    Where a row lacks one of the main fields, names that differ in capitals or in blanks around them count too.
    """
    values = _values(row, names)
    if any(name in names and name not in values for name in _MAIN_FIELDS):
        # The first of two that are alike.
        alike = {str(column).strip().casefold(): row[column] for column in reversed(list(row))}
        values = _values(alike, names) | values
    return values


def _values(row: Mapping[Any, Any], names: Sequence[str]) -> dict[str, Any]:
    values = {}
    for name in names:
        for alias in ALIASES[name]:
            if (value := row.get(alias)) is not None:
                values[name] = value
                break
    return values


def found_under(row: Mapping[Any, Any], name: str) -> str:
    """The name under which a row has a field, its own where it has none."""
    return next((alias for alias in ALIASES[name] if alias in row), name)


def as_texts(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values as texts and lists of texts; what is missing is left out.

    Raises:
        UnreadableValueError: The message names the field: "references[1] is a date: …".
    """
    texts: dict[str, Any] = {}
    for name, value in values.items():
        try:
            text = texts_of(value) if name in LIST_FIELDS else text_of(value)
        except UnreadableValueError as error:
            raise UnreadableValueError(f"{name}{error}") from None
        if isinstance(text, list) and None in text:
            raise UnreadableValueError(f"{name}[{text.index(None)}] is missing (None or NaN): leave it out")
        if text is not None:
            texts[name] = text
    return texts
