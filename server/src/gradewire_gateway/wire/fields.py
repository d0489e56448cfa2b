"""Values of a JSON object by their type; an error names the field."""

from collections.abc import Mapping
from typing import Any

from gradewire_gateway.problems import invalid


def text_of(value: object, at: str) -> str:
    """A text; raises ProblemError for anything else, as all of these do."""
    if not isinstance(value, str):
        raise invalid(f"{at}: takes a text", at)
    try:
        value.encode()
    except UnicodeEncodeError:  # half of a pair, "\\ud800"
        raise invalid(f"{at}: takes a text of whole characters", at) from None
    return value


def list_of(value: object, at: str) -> list[Any]:
    """A list."""
    if not isinstance(value, list):
        raise invalid(f"{at}: takes a list", at)
    return value


def object_of(value: object, at: str) -> Mapping[str, Any]:
    """An object."""
    if not isinstance(value, dict):
        raise invalid(f"{at}: takes an object", at)
    return value


def count_of(value: object, at: str, most: int) -> int:
    """A whole number from 1 to `most`."""
    if type(value) is not int or not 1 <= value <= most:
        raise invalid(f"{at}: takes a whole number from 1 to {most}", at)
    return value
