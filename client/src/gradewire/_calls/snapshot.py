"""Copies of items that wait: what is read of them, as plain values."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Any, Final

from gradewire._input.aliases import ALIASES, LIST_FIELDS, TEXT_FIELDS
from gradewire._input.values import plain
from gradewire.items import Item
from gradewire_proto.conventions.telemetry_names import TRACEPARENT_KEY

READ_NAMES: Final = frozenset(
    (TRACEPARENT_KEY, *(alias for name in (*TEXT_FIELDS, *LIST_FIELDS) for alias in ALIASES[name]))
)
"""Of fields that every metric may read, in lower case; of pictures only those read that show them."""


def snapshot(item: Any, read: AbstractSet[str]) -> tuple[Any, int]:
    """A copy that the caller's later changes do not reach, and the bytes of its texts and pictures.

    Args:
        item: Of a call; what is neither a mapping nor an `Item` is given back as it is.
        read: Names of the fields that are kept: `READ_NAMES`, and "images" where pictures are shown.
    """
    if isinstance(item, Item):
        lists: dict[str, Any] = {name: _copied(getattr(item, name)) for name in LIST_FIELDS}
        lists["images"] = _copied(item.images) if "images" in read else ()
        values = {name: getattr(item, name) for name in TEXT_FIELDS}
        return replace(item, **lists), _size(values | lists)
    if isinstance(item, Mapping):
        # Of a field that is not looked at only the name is kept, for messages: it may hold an image.
        kept = {name: _copied(value) if _is_read(name, read) else None for name, value in item.items()}
        return kept, _size(kept)
    return item, 0


def _is_read(name: object, read: AbstractSet[str]) -> bool:
    return name in read or str(name).strip().casefold() in read


def _copied(value: Any) -> Any:
    value = plain(value)
    if isinstance(value, Mapping):
        return dict(value)
    return list(value) if isinstance(value, list) else value


def _size(values: Mapping[Any, Any]) -> int:
    size = 0
    for value in values.values():
        for text in value if isinstance(value, list | tuple) else (value,):
            if isinstance(text, str):
                size += len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))
            elif isinstance(text, bytes | bytearray):
                size += len(text)
    return size
