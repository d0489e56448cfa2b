"""Files of a folder on a file system of fsspec, each written as a whole as far as the file system can do that."""

from __future__ import annotations

import contextlib
import re
import uuid
from typing import TYPE_CHECKING, Any, Final

from gradewire.cli.input.urls import protocols

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

_OBJECT_STORES: Final = frozenset({"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl", "oci", "oss", "tos"})
"""Protocols of fsspec where files have names alone, in buckets."""
_HIDDEN: Final = re.compile(r"\.(?P<name>.+)\.[0-9a-f]{32}\.(?P<kind>new|old)")


def is_object_store(system: Any) -> bool:
    """Whether a file system has no folders, and shows a file when all of it is there."""
    return not _OBJECT_STORES.isdisjoint(protocols(system))


def hidden_name(name: str, kind: str) -> str:
    """Another name for a file, which no other process gives: `new` while it is written, `old` while it is replaced."""
    return f".{name}.{uuid.uuid4().hex}.{kind}"


def named_of(name: str) -> str:
    """The name of the file that a kill left under this name; the same where it has its own."""
    hidden = _HIDDEN.fullmatch(name)
    return hidden["name"] if hidden else name


def write_whole(system: Any, folder: str, name: str, data: bytes) -> None:
    """Writes a file, in place of what has its name.

    An object store shows the old file or the whole new one; so does a file system that renames onto a file (SFTP). One
    that renames and refuses a name that is taken (SMB, WebHDFS) has a moment without the file: a kill then leaves the
    old one under a hidden name, from which `put_back` takes it. Where moving is copying (fsspec's default) the new file
    is copied over the old one: a reader may see its beginning, and a kill may leave that.

    Raises:
        Exception: Whatever the file system raises; the old file is there, unless it was being copied over.
    """
    target = f"{folder}/{name}"
    if is_object_store(system):
        system.pipe_file(target, data)
        return
    unfinished = f"{folder}/{hidden_name(name, 'new')}"
    try:
        system.pipe_file(unfinished, data)
        if _refused(system, unfinished, target, data):
            _replace(system, unfinished, target, f"{folder}/{hidden_name(name, 'old')}", data)
    except BaseException:
        with contextlib.suppress(Exception):  # what failed is told, not that its rest stays
            system.rm_file(unfinished)
        raise


def put_back(system: Any, folder: str, names: AbstractSet[str]) -> None:
    """Gives files that a kill left under a hidden name while they were replaced their own again.

    Args:
        system: The file system.
        folder: The folder there.
        names: All files in it.
    """
    there = set(names)
    for hidden in sorted(names):
        if hidden.endswith(".old") and (name := named_of(hidden)) not in there:
            system.mv(f"{folder}/{hidden}", f"{folder}/{name}")
            there.add(name)


def _refused(system: Any, unfinished: str, target: str, data: bytes) -> bool:
    """Moves a file to its name; whether another content has that and the file system would not replace it."""
    try:
        system.mv(unfinished, target)
    except Exception:
        # What a name that is taken raises is another error on each file system.
        if not _is_there(system, target):
            raise
        found = system.cat_file(target)
        if found != data and data.startswith(found):
            system.rm_file(target)  # a copy that broke off must not be taken for the file
            raise
    else:
        if not _is_there(system, unfinished):
            return False
        found = system.cat_file(target)  # WebHDFS says nothing where it moves nothing
    if found != data:
        return True
    # Another worker has written the same, or what was copied could not be removed.
    _remove(system, unfinished)
    return False


def _replace(system: Any, unfinished: str, target: str, aside: str, data: bytes) -> None:
    """Moves a file to a name that is taken."""
    system.mv(target, aside)
    try:
        if _refused(system, unfinished, target, data):
            _remove(system, unfinished)  # another worker was faster, and its file is as good
    except BaseException:
        with contextlib.suppress(Exception):  # what failed is told; `put_back` comes to it later
            system.mv(aside, target)
        raise
    _remove(system, aside)


def _is_there(system: Any, path: str) -> bool:
    system.invalidate_cache()
    return bool(system.exists(path))


def _remove(system: Any, path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        system.rm_file(path)
