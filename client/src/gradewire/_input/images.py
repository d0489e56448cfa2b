"""Pictures of an item, as people hold them, and as they go on the wire."""

import io
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from gradewire._input.values import UnreadableValueError
from gradewire_proto.v1 import types_pb2

_HANDED_ON = ("data:", "https:")


def image_messages(values: object) -> list[types_pb2.Image]:
    """The pictures of an item.

    Args:
        values: One picture or a list of them: bytes of a file, a path (pathlib.Path), a data: URI or an https address
            as a text (the server says of any other that it is none), a picture of Pillow's, or a mapping with `bytes`,
            as Hugging Face's datasets have it.

    Raises:
        UnreadableValueError: The message names the place: "[1] is a float: …".
    """
    listed = values if isinstance(values, list | tuple) else [values]
    return [_message(place, value) for place, value in enumerate(listed) if value is not None]


def local_picture(named: str, folder: Path) -> list[bytes | str]:
    """What is sent of a picture that a row names; nothing where it names none that may be sent.

    A URI is sent as it is. A path is read where it lies in `folder` or below: a file of rows from somewhere else must
    not send what lies elsewhere on this machine.
    """
    named = named.strip()
    if named[:6].casefold().startswith(_HANDED_ON):
        return [named]
    try:
        path = (folder / named).resolve()
        return [path.read_bytes()] if path.is_file() and path.is_relative_to(folder.resolve()) else []
    except (OSError, ValueError):
        return []


def _message(place: int, value: Any) -> types_pb2.Image:
    if isinstance(value, Mapping):
        value = value.get("bytes")  # no path: rows come from strangers, who may name any file of this machine
    if isinstance(value, bytes | bytearray | memoryview):
        return types_pb2.Image(data=bytes(value))
    if isinstance(value, str):
        try:
            return types_pb2.Image(uri=value)
        except (TypeError, ValueError):
            raise UnreadableValueError(f"[{place}] is an address that cannot be encoded: give bytes") from None
    if isinstance(value, PathLike):
        try:
            return types_pb2.Image(data=Path(value).read_bytes())
        except OSError as error:
            raise UnreadableValueError(f"[{place}] cannot be read: {error.strerror or error}") from error
    if callable(getattr(value, "save", None)) and hasattr(value, "mode"):  # of Pillow's, which is not imported here
        file = io.BytesIO()
        value.save(file, "PNG")
        return types_pb2.Image(data=file.getvalue())
    raise UnreadableValueError(f"[{place}] is a {type(value).__name__}: give bytes, a pathlib.Path or a URI")
