"""Brings a set's rows into a folder, byte for byte those that the figures were taken on."""

import json
import shutil
from pathlib import Path

from benchmarks.data.convert import CONVERSIONS
from benchmarks.data.sources import download_sources, find_sources
from benchmarks.data.table import LabelledSet

from gradewire_models.errors import DigestMismatchError
from gradewire_models.locks import exclusive
from gradewire_models.repository.digest import file_sha256


def get_rows(
    name: str, labelled: LabelledSet, directory: Path, *, local: Path | None = None, other_rows: bool = False
) -> str:
    """Writes a set's rows into `directory`, unless they are there; another program that does the same is waited for.

    Args:
        name: Of the set.
        labelled: What the table says of it.
        directory: Where the rows go.
        local: A folder with the rows or with the sources; None: they are downloaded.
        other_rows: Take rows of another SHA-256 too.

    Returns:
        What was done, for people.

    Raises:
        DownloadError: A source cannot be had.
        DigestMismatchError: A source, or what was made, is not what the table says; `directory` is as it was.
        ConversionError: A source is of another form.
        OSError: A file cannot be read or written.
    """
    target = directory / labelled.file
    downloads = directory / ".downloads" / name
    with exclusive(downloads / ".lock", lambda _: None):
        if target.is_file() and file_sha256(target) == labelled.rows_sha256:
            return f"{target} is there already"
        made = downloads / labelled.file
        if local is not None and (local / labelled.file).is_file():
            shutil.copyfile(local / labelled.file, made)
        else:
            sources = find_sources(labelled, local) if local else download_sources(labelled.sources, downloads)
            rows = (json.dumps(row, ensure_ascii=False) for row in CONVERSIONS[name](sources))
            made.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
        found = file_sha256(made)
        if found != labelled.rows_sha256 and not other_rows:
            made.unlink()
            raise DigestMismatchError(
                f"{labelled.file}: these rows have SHA-256 {found}, the figures were taken on "
                f"{labelled.rows_sha256}; --other-rows takes them all the same"
            )
        made.replace(target)
        if local is None:
            for source in labelled.sources:
                (downloads / source.name).unlink()
    with target.open("rb") as lines:
        count = sum(1 for _ in lines)
    told = "" if found == labelled.rows_sha256 else f"; OTHER ROWS than the figures were taken on, SHA-256 {found}"
    return f"{target}: {count} rows ({labelled.licence}; {labelled.citation}){told}"
