"""Download the labelled sets in sets.toml, check their SHA-256, and write their rows."""

import http.client
import json
import shutil
import tomllib
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.data.convert import CONVERSIONS
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from gradewire_models.errors import DigestMismatchError, DownloadError
from gradewire_models.locks import exclusive
from gradewire_models.repository.digest import file_sha256

TABLE: Final = Path(__file__).with_name("sets.toml")

_SHA256: Final = r"^[0-9a-f]{64}$"
_TIMEOUT_S: Final = 60.0


class TableError(Exception):
    """An error for a table that cannot be read or lacks a set."""


class Source(BaseModel):
    """A public file.

    Attributes:
        name: File name, also required for local copies.
        url: Address of the file at a fixed commit.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(pattern=r"^[\w.-]+$")
    url: str
    sha256: str | None = Field(default=None, pattern=_SHA256)


class LabelledSet(BaseModel):
    """A set of labelled rows."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    file: str = Field(pattern=r"^[\w.-]+$")
    rows_sha256: str = Field(pattern=_SHA256)
    rows: int
    licence: str
    citation: str
    made: str
    sources: tuple[Source, ...] = Field(min_length=1)


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid")

    sets: dict[str, LabelledSet]


def read_table(path: Path = TABLE) -> dict[str, LabelledSet]:
    """Return a table's sets by name.

    Raises:
        TableError: The file is missing or malformed.
    """
    try:
        return _Table.model_validate(tomllib.loads(path.read_text("utf-8"))).sets
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, ValidationError) as error:
        raise TableError(f"{path}: {error}") from error


def find_sources(labelled: LabelledSet, directory: Path) -> list[Path]:
    """Return the paths of a set's sources in a user's folder, in the table's order.

    Raises:
        DownloadError: Sources are missing.
        DigestMismatchError: A source differs from its pinned digest.
    """
    paths = [directory / source.name for source in labelled.sources]
    if missing := [path.name for path in paths if not path.is_file()]:
        raise DownloadError(
            f"{directory} has neither {labelled.file} nor its sources {', '.join(missing)}. Download these from "
            + ", ".join(source.url for source in labelled.sources if source.name in missing)
        )
    for source, path in zip(labelled.sources, paths, strict=True):
        _check(source, path)
    return paths


def download_sources(sources: Sequence[Source], directory: Path) -> list[Path]:
    """Download the files that are missing in the folder; return all paths in the table's order.

    An interrupted download resumes with the first missing file.

    Raises:
        DownloadError: A file cannot be downloaded.
        DigestMismatchError: A file differs from its pinned digest; the file is deleted.
        OSError: The folder is not writable.
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
        raise DigestMismatchError(f"{path} has SHA-256 {found}, but the table pins {source.sha256}. Copy it again")


def _download(source: Source, target: Path) -> None:
    arriving = target.with_name(f"{target.name}.part")
    try:
        # All addresses are from the table.
        with urllib.request.urlopen(source.url, timeout=_TIMEOUT_S) as answer, arriving.open("wb") as file:  # noqa: S310
            shutil.copyfileobj(answer, file)
            expected = answer.headers.get("Content-Length")
            found = file.tell()
    except urllib.error.HTTPError as error:
        with error:  # the error owns the connection
            raise _undone(source, str(error)) from error
    except (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError, ValueError) as error:
        raise _undone(source, str(error)) from error
    # copyfileobj does not notice a truncated body.
    if expected is not None and int(expected) != found:
        raise _undone(source, f"received {found} of {expected} bytes")
    arriving.replace(target)


def _undone(source: Source, reason: str) -> DownloadError:
    return DownloadError(
        f"cannot download {source.url}: {reason}. Try again, or without a network name a folder that "
        f"contains {source.name} with --from"
    )


def get_rows(
    name: str, labelled: LabelledSet, directory: Path, *, local: Path | None = None, other_rows: bool = False
) -> str:
    """Write a set's rows to `directory` unless they exist; wait if another process is writing the rows.

    The sources or the rows are read from `local`, or downloaded if it is None. With `other_rows`, the rows may have a
    different SHA-256. Return a summary for the user.

    Raises:
        DownloadError: A source is missing or cannot be downloaded.
        DigestMismatchError: A source or the result differs from the table; `directory` is unchanged.
        ConversionError: A source has a different format.
        OSError: A file cannot be read or written.
    """
    target = directory / labelled.file
    downloads = directory / ".downloads" / name
    with exclusive(downloads / ".lock", lambda _: None):
        if target.is_file() and file_sha256(target) == labelled.rows_sha256:
            return f"{target} is already there"
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
                f"{labelled.file}: these rows have SHA-256 {found}, but the published results used "
                f"{labelled.rows_sha256}. Accept them with --other-rows"
            )
        made.replace(target)
        if local is None:
            for source in labelled.sources:
                (downloads / source.name).unlink()
    with target.open("rb") as lines:
        count = sum(1 for _ in lines)
    told = "" if found == labelled.rows_sha256 else f"; NOT THE ROWS of the published results, SHA-256 {found}"
    return f"{target}: {count} rows ({labelled.licence}; {labelled.citation}){told}"
