"""Values inside objects and lists of a row, named by dotted paths such as `reward_model.ground_truth`."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from gradewire._rows import plain

if TYPE_CHECKING:
    from collections.abc import Iterator

DOT: Final = "."
_MAX_CHARACTERS: Final = 1 << 20
"""Maximum length of a cell to parse, because Python's parser needs a hundred times the cell's size in memory."""
_SEARCHED_DEPTH: Final = 3
_SEARCHED_ENTRIES: Final = 4
_NOT_TEXTS: Final = frozenset({"role", "type", "id", "name"})
"""Keys of objects whose text is no answer, such as the role in a chat's message."""


class Absent:
    """The value of a path that a row does not have."""


ABSENT: Final = Absent()


def value_at(value: Any, path: str) -> Any:
    """Return the value at a path of keys and list positions (from 0), or `ABSENT`.

    A cell of text may contain the object or list as JSON or as Python prints it. If the object is missing, so is the
    value: return None. Keys may contain dots.
    """
    value = plain(value)
    if isinstance(value, str):
        value = _parsed(value)
    if value is None:
        return None
    if isinstance(value, Mapping):
        if path in value:
            return value[path]
        heads = [place for place, sign in enumerate(path) if sign == DOT and path[:place] in value]
        found = (value_at(value[path[:place]], path[place + 1 :]) for place in heads)
        return next((each for each in found if each is not ABSENT), ABSENT)
    head, dot, rest = path.partition(DOT)
    if not isinstance(value, list | tuple) or not (head.isascii() and head.isdecimal() and len(head) < 10):
        return ABSENT
    if int(head) >= len(value):
        return ABSENT
    return value_at(value[int(head)], rest) if dot else value[int(head)]


def _parsed(cell: str) -> Any:
    text = cell.strip()
    if text[:1] + text[-1:] not in {"{}", "[]"} or len(text) > _MAX_CHARACTERS:
        return cell
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return cell


def text_paths(value: Any, path: str, *, depth: int = _SEARCHED_DEPTH) -> Iterator[str]:
    """Yield the paths of texts and lists of texts inside an object or a list at `path`."""
    value = plain(value)
    if isinstance(value, Mapping):
        inner = [(str(key), each) for key, each in value.items() if key not in _NOT_TEXTS]
    elif isinstance(value, list):
        inner = [(str(place), each) for place, each in enumerate(value[:_SEARCHED_ENTRIES])]
    else:
        return
    for key, each in inner:
        read = plain(each)
        is_list = isinstance(read, list) and bool(read) and all(isinstance(entry, str) for entry in read)
        if isinstance(read, str) or is_list:
            yield f"{path}.{key}"
        elif depth > 1:
            yield from text_paths(read, f"{path}.{key}", depth=depth - 1)
