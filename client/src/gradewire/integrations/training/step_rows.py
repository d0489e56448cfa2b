"""Rows of a step as lines of JSON, which are sent as the rows themselves would be."""

import base64
import io
import json
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import fields
from decimal import Decimal
from fractions import Fraction
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from gradewire._calls.submit import snapshot
from gradewire.items import Item

_NAMES = tuple(field.name for field in fields(Item))


def encode_row(item: Any, read: AbstractSet[str]) -> bytes:
    """One line, with its end; never raises: a row that cannot be written becomes one that has no score.

    Args:
        item: Of a call.
        read: Names of the fields that are kept, as `snapshot` takes them.
    """
    try:
        taken, _ = snapshot(item, read)
        if isinstance(taken, Item):
            taken = {name: getattr(taken, name) for name in _NAMES}
        elif isinstance(taken, Mapping):
            taken = {str(name): value for name, value in taken.items()}
        line = json.dumps(taken, default=_stand_in)
    except Exception:  # noqa: BLE001 - whatever the values of a caller raise: its neighbours are scored
        line = json.dumps(_unreadable(item))
    return line.encode() + b"\n"


def decode_row(line: bytes) -> Any:
    """The row of a line.

    Raises:
        ValueError: It is no line of `encode_row`.
    """
    return json.loads(line, object_hook=_restored)


def _stand_in(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Decimal | Fraction):
        return str(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return {"$bytes": base64.b64encode(bytes(value)).decode()}
    if isinstance(value, PathLike):
        return {"$path": str(fspath(value))}
    if callable(getattr(value, "save", None)) and hasattr(value, "mode"):  # a picture of Pillow's
        file = io.BytesIO()
        value.save(file, "PNG")
        return {"$bytes": base64.b64encode(file.getvalue()).decode()}
    return _unreadable(value)


def _unreadable(value: Any) -> dict[str, str]:
    return {"$unreadable": type(value).__name__}


def _restored(value: dict[str, Any]) -> Any:
    if len(value) == 1:
        ((key, content),) = value.items()
        if key == "$bytes" and isinstance(content, str):
            return base64.b64decode(content, validate=True)
        if key == "$path" and isinstance(content, str):
            return Path(content)
    return value
