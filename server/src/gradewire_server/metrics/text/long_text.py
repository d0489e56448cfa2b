"""Work on texts of hundreds of kilobytes that leaves the interpreter to others in between."""

from collections.abc import Mapping
from typing import Final

_PART_CHARACTERS: Final = 32_768
"""Translated in one call: 4 ms of a text that is not ASCII."""


def translated(text: str, table: Mapping[int, str | int | None]) -> str:
    """What `text.translate(table)` gives.

    One call for half a megabyte would hold the interpreter's lock for 50 ms, on whatever thread.
    """
    if len(text) <= _PART_CHARACTERS:
        return text.translate(table)
    starts = range(0, len(text), _PART_CHARACTERS)
    return "".join([text[start : start + _PART_CHARACTERS].translate(table) for start in starts])
