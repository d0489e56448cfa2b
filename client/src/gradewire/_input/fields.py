"""Fields of an item or an entry, found in a mapping under their own or another usual name, as texts."""

from collections.abc import Mapping, Sequence
from typing import Any

from gradewire._input.aliases import ALIASES, LIST_FIELDS
from gradewire._input.values import UnreadableValueError, text_of, texts_of


def found_values(row: Mapping[Any, Any], names: Sequence[str]) -> dict[str, Any]:
    """Values of fields that a row has, by the fields' own names; those that are None are left out."""
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
