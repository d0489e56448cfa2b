"""Pack directories into archives, and cut these into parts that ``sha256sum``, ``cat`` and ``tar`` can join."""

import hashlib
import lzma
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Final

SUMS: Final = "parts.sha256"
_CHUNK_BYTES: Final = 1 << 20
SMALL: Final = 6
"""Preset of xz for code."""
FAST: Final = 0
"""Preset of xz for weights and kernels, which hardly compress: a fifth of the time for half a per cent more."""


def archive(directory: Path, target: Path, preset: int = SMALL) -> int:
    """Pack a directory under its own name; return the archive's size in bytes."""
    # The first filter makes libraries 3 % smaller by normalising jumps in x86 code.
    filters = [{"id": lzma.FILTER_X86}, {"id": lzma.FILTER_LZMA2, "preset": preset}]
    with lzma.open(target, "wb", filters=filters) as packed, tarfile.open(fileobj=packed, mode="w|") as tar:
        tar.add(directory, arcname=directory.name)
    return target.stat().st_size


def cut(archives: Sequence[Path], directory: Path, part_bytes: int) -> list[Path]:
    """Join archives and cut them into parts of at most `part_bytes`, with their digests in `SUMS`.

    The archives are deleted while they are read, so the disk holds about one copy. Several compressed archives in a
    row are one for ``tar --ignore-zeros``.

    Raises:
        ValueError: `part_bytes` is not positive.
    """
    if part_bytes <= 0:
        raise ValueError(f"a part needs at least one byte, not {part_bytes}")
    parts: list[Path] = []
    digests: list[str] = []
    chunks = _chunks(archives)
    rest = next(chunks, b"")
    while rest:
        path = directory / f"part-{len(parts) + 1:03d}"
        with path.open("wb") as part:
            digest, rest = _fill(part, rest, chunks, part_bytes)
        parts.append(path)
        digests.append(digest)
    lines = (f"{digest}  {path.name}\n" for digest, path in zip(digests, parts, strict=True))
    (directory / SUMS).write_text("".join(lines), "utf-8")
    return parts


def _chunks(archives: Sequence[Path]) -> Iterator[bytes]:
    for path in archives:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK_BYTES):
                yield chunk
        path.unlink()


def _fill(part: IO[bytes], first: bytes, chunks: Iterator[bytes], part_bytes: int) -> tuple[str, bytes]:
    """Write one part, beginning with `first`; return the part's digest and the bytes that did not fit."""
    digest, room, chunk = hashlib.sha256(), part_bytes, first
    while chunk and room:
        taken, chunk = chunk[:room], chunk[room:]
        part.write(taken)
        digest.update(taken)
        room -= len(taken)
        chunk = chunk or next(chunks, b"")
    return digest.hexdigest(), chunk
