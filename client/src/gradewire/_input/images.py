"""Pictures of an item, as people hold them, and as they go on the wire."""

import contextlib
import hashlib
import io
from collections.abc import Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from gradewire._input.values import UnreadableValueError, is_missing
from gradewire_proto.v1 import types_pb2

_HANDED_ON = ("data:", "https:")
_JPEGS_MODES = frozenset({"CMYK", "YCbCr"})
"""Usual in files, and none that PNG has."""
_DIGEST_BYTES = 16


def image_messages(values: object) -> list[types_pb2.Image]:
    """The pictures of an item.

    Args:
        values: One picture or a list of them: bytes of a file, a path (pathlib.Path), a data: URI or an https address
            as a text (the server says of any other that it is none), a picture of Pillow's, or a mapping with `bytes`,
            as Hugging Face's datasets have it.

    Raises:
        UnreadableValueError: The message names the place: "[1] is a float: …".
    """
    if isinstance(values, str) and not values.strip():
        return []
    listed = values if isinstance(values, list | tuple) else [values]
    return [_message(place, value) for place, value in enumerate(listed) if not is_missing(value)]


def local_picture(named: str, folder: Path) -> bytes | str:
    """What is sent of a picture that a row names.

    A URI is sent as it is. A path is read where it lies in `folder` or below: a file of rows from somewhere else must
    not send what lies elsewhere on this machine.

    Raises:
        UnreadableValueError: There is nothing that may be sent; the message says why, without the picture's name.
    """
    named = named.strip()
    if _is_handed_on(named):
        # A lone surrogate has no place on the wire; the server refuses the address as it comes.
        return named.encode(errors="replace").decode()
    with _named_reasons():
        return _file_in(named, folder).read_bytes()


def picture_digest(named: str, folder: Path) -> str:
    """32 hex digits over what `local_picture` sends, "" where it sends nothing; files are read piece by piece."""
    named = named.strip()
    if _is_handed_on(named):
        return hashlib.blake2b(named.encode(errors="surrogatepass"), digest_size=_DIGEST_BYTES).hexdigest()
    try:
        with _named_reasons(), _file_in(named, folder).open("rb") as stream:
            return hashlib.file_digest(stream, lambda: hashlib.blake2b(digest_size=_DIGEST_BYTES)).hexdigest()
    except UnreadableValueError:
        return ""


def _is_handed_on(named: str) -> bool:
    return named[:6].casefold().startswith(_HANDED_ON)


def _file_in(named: str, folder: Path) -> Path:
    path = (folder / named).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise UnreadableValueError("it lies outside of the folder of the rows, and nothing is sent from there")
    if not path.is_file():
        raise UnreadableValueError("there is no such file in the folder of the rows")
    return path


@contextlib.contextmanager
def _named_reasons() -> Iterator[None]:
    try:
        yield
    except UnreadableValueError:
        raise
    except OSError as error:
        raise UnreadableValueError(f"it cannot be read: {error.strerror or error}") from error
    except (ValueError, RuntimeError) as error:  # a NUL in the name; links that lead to each other
        raise UnreadableValueError("no file can be found by this name") from error


def _message(place: int, value: Any) -> types_pb2.Image:
    if isinstance(value, Mapping):
        # No path: rows come from strangers, who may name any file of this machine.
        value = value.get("bytes")
        if value is None:
            raise UnreadableValueError(f"[{place}] is a mapping without bytes: give those of the file that it names")
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
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            raise UnreadableValueError(f"[{place}] cannot be read: {why}") from error
    if callable(getattr(value, "save", None)) and hasattr(value, "mode"):  # of Pillow's, which is not imported here
        return types_pb2.Image(data=_png(place, value))
    raise UnreadableValueError(f"[{place}] is a {type(value).__name__}: give bytes, a pathlib.Path or a URI")


def _png(place: int, picture: Any) -> bytes:
    file = io.BytesIO()
    try:
        (picture.convert("RGB") if picture.mode in _JPEGS_MODES else picture).save(file, "PNG")
    # Whatever decoders raise over a file that is read only now.
    except Exception as error:
        raise UnreadableValueError(
            f"[{place}] is a picture of mode {picture.mode} that cannot be written as PNG ({error}): convert it to "
            "RGB, or give the file's bytes"
        ) from error
    return file.getvalue()
