"""Members of inspect's .eval logs: JSON in a zip archive, of which each is held in memory by itself.

Newer versions compress by Zstandard, which zipfile reads from Python 3.14 on; pyarrow reads it before that.
"""

import io
import json
import lzma
import os
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final

from gradewire.cli.problems import InputError, named_errors

MAX_MEMBER_BYTES: Final = 1 << 28
"""Of one member unpacked: a sample with all its events has some MB."""
MAX_UNPACKED_BYTES: Final = 1 << 36
"""Of all members: what is more is no log but a bomb."""
_LOCAL_HEADER_BYTES: Final = 30
_CONVERT: Final = "write the log as JSON by: inspect log convert LOG --to json --output-dir DIR"


class UnreadableMemberError(ValueError):
    """A member cannot be read; the message goes on from its name."""


@contextmanager
def opened_archive(path: str) -> Iterator[zipfile.ZipFile]:
    """The archive of a log.

    Raises:
        InputError: It is not there, no archive, or claims to hold more than a log does.
    """
    with named_errors(path):
        try:
            archive = zipfile.ZipFile(path)
        except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
            raise InputError(f"{path} is no whole .eval log: {error}") from error
    with archive:
        claimed = sum(member.file_size for member in archive.infolist())
        if claimed > MAX_UNPACKED_BYTES:
            raise InputError(
                f"{path} would unpack to {claimed >> 30} GiB, and logs up to {MAX_UNPACKED_BYTES >> 30} GiB are read: "
                "score parts of it"
            )
        yield archive


def loaded_member(archive: zipfile.ZipFile, name: str) -> Any:
    """The document of a member.

    Raises:
        UnreadableMemberError: It is too large, damaged, or not JSON.
        InputError: What unpacks it is not installed.
        KeyError: There is no such member.
    """
    member = archive.getinfo(name)
    if member.file_size > MAX_MEMBER_BYTES:
        raise UnreadableMemberError(
            f"would unpack to {member.file_size >> 20} MiB, and members up to {MAX_MEMBER_BYTES >> 20} MiB are read"
        )
    try:
        with _unpacking(archive, member) as stream:
            # One more byte than it claims tells that it claims too little.
            content = stream.read(member.file_size + 1)
    except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError, RuntimeError, ValueError) as error:
        raise UnreadableMemberError(f"cannot be unpacked: {error}") from error
    if len(content) != member.file_size or zlib.crc32(content) != member.CRC:
        raise UnreadableMemberError("is damaged: it is not what the archive says of it")
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise UnreadableMemberError(f"is not JSON: {error}") from error


def _unpacking(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Any:
    try:
        return archive.open(member)
    except NotImplementedError:
        return _zstandard(archive, member)


def _zstandard(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Any:
    try:
        import pyarrow as pa  # noqa: PLC0415 - optional and slow to import
    except ImportError as error:
        raise InputError(
            f"{archive.filename} is compressed by Zstandard, which Python 3.14 reads, or pyarrow: pip install "
            f"'gradewire[parquet]'; or {_CONVERT}"
        ) from error
    with Path(archive.filename or "").open("rb") as file:
        raw = _packed(file, member)
    return pa.CompressedInputStream(pa.BufferReader(raw), "zstd")


def _packed(file: BinaryIO, member: zipfile.ZipInfo) -> bytes:
    """The bytes of a member as they stand in the archive, behind a header of its own."""
    file.seek(member.header_offset)
    header = file.read(_LOCAL_HEADER_BYTES)
    file.seek(sum(int.from_bytes(header[place : place + 2], "little") for place in (26, 28)), io.SEEK_CUR)
    # It can claim any size, and as much memory would be asked for.
    return file.read(min(member.compress_size, os.fstat(file.fileno()).st_size))
