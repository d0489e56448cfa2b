"""Gets the public files of a set, over HTTP or out of a folder, and lets only pinned bytes through."""

import http.client
import shutil
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.data.table import LabelledSet, Source

from gradewire_models.errors import DigestMismatchError, DownloadError
from gradewire_models.repository.digest import file_sha256

_TIMEOUT_S: Final = 60.0


def find_sources(labelled: LabelledSet, directory: Path) -> list[Path]:
    """A set's sources in a folder that somebody filled, in the order of the table.

    Raises:
        DownloadError: Some are not there; names them.
        DigestMismatchError: One is not the pinned file.
    """
    paths = [directory / source.name for source in labelled.sources]
    if missing := [path.name for path in paths if not path.is_file()]:
        raise DownloadError(
            f"{directory} has neither {labelled.file} nor {', '.join(missing)}, of which it is made; they are at "
            + ", ".join(source.url for source in labelled.sources if source.name in missing)
        )
    for source, path in zip(labelled.sources, paths, strict=True):
        _check(source, path)
    return paths


def download_sources(sources: Sequence[Source], directory: Path) -> list[Path]:
    """Downloads files that are not in the folder yet, in the order of the table.

    A file has its name there only when it came whole, so an interrupted download of several goes on where it stopped.

    Raises:
        DownloadError: One cannot be had.
        DigestMismatchError: One is not the pinned file; it is deleted.
        OSError: The folder cannot be written.
    """
    directory.mkdir(parents=True, exist_ok=True)
    paths = []
    for source in sources:
        path = directory / source.name
        if not path.is_file():
            _download(source, path)
        try:
            _check(source, path)
        except DigestMismatchError:
            path.unlink()
            raise
        paths.append(path)
    return paths


def _check(source: Source, path: Path) -> None:
    if source.sha256 is not None and (found := file_sha256(path)) != source.sha256:
        raise DigestMismatchError(f"{path} has SHA-256 {found}, the table pins {source.sha256}: take a fresh copy")


def _download(source: Source, target: Path) -> None:
    arriving = target.with_name(f"{target.name}.part")
    try:
        # The table names the addresses, and its reader nothing but these.
        with urllib.request.urlopen(source.url, timeout=_TIMEOUT_S) as answer, arriving.open("wb") as file:  # noqa: S310
            shutil.copyfileobj(answer, file)
            expected = answer.headers.get("Content-Length")
            found = file.tell()
    except urllib.error.HTTPError as error:
        with error:  # it holds the connection
            raise _undone(source, str(error)) from error
    except (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError, ValueError) as error:
        raise _undone(source, str(error)) from error
    # copyfileobj takes a body that ends early for a whole one.
    if expected is not None and int(expected) != found:
        raise _undone(source, f"{found} of {expected} bytes came")
    arriving.replace(target)


def _undone(source: Source, reason: str) -> DownloadError:
    return DownloadError(
        f"{source.url} could not be downloaded: {reason}; try again, or where there is no network name a folder that "
        f"holds {source.name} with --from"
    )
