"""Values inside objects and lists of a row, named by dotted paths such as `reward_model.ground_truth`."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from gradewire._rows import plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gradewire_cli.rows.formats import Record

_DOT: Final = "."
_MAX_CHARACTERS: Final = 1 << 20
"""Maximum length of a cell to parse, because Python's parser needs a hundred times the cell's size in memory."""
_SEARCHED_DEPTH: Final = 3
_SEARCHED_ENTRIES: Final = 4
_NOT_TEXTS: Final = frozenset({"role", "type", "id", "name"})
"""Keys of objects whose text is no answer, such as the role in a chat's message."""


class _Absent:
    """The value of a path that a row does not have."""


_ABSENT: Final = _Absent()


def with_paths(records: Iterable[Record], columns: Sequence[str]) -> Iterator[Record]:
    """Yield the records with an additional field for each of these columns that is a path into the record's fields.

    A column of the file with the whole path as its name is left unchanged.
    """
    paths = [column for column in dict.fromkeys(columns) if _DOT in column]
    for record in records:
        fields = record.fields
        if fields is None or not paths:
            yield record
            continue
        found = {path: value_at(fields, path) for path in paths if path not in fields}
        nested = {path: value for path, value in found.items() if value is not _ABSENT}
        yield replace(record, fields={**fields, **nested}, nested=tuple(nested)) if nested else record


def value_at(value: Any, path: str) -> Any:
    """Return the value at a path of keys and list positions (from 0), or `_ABSENT`.

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
        heads = [place for place, sign in enumerate(path) if sign == _DOT and path[:place] in value]
        found = (value_at(value[path[:place]], path[place + 1 :]) for place in heads)
        return next((each for each in found if each is not _ABSENT), _ABSENT)
    head, dot, rest = path.partition(_DOT)
    if not isinstance(value, list | tuple) or not (head.isascii() and head.isdecimal() and len(head) < 10):
        return _ABSENT
    if int(head) >= len(value):
        return _ABSENT
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
