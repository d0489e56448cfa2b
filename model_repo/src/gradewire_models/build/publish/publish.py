"""Puts a finished model into a repository: everything or nothing, and one builder at a time."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gradewire_models.build.progress import Report
from gradewire_models.build.publish.exchange import exchange
from gradewire_models.build.publish.fitted import Fitted, carry_calibrations
from gradewire_models.build.publish.lock import exclusive
from gradewire_models.repository.built import newest_version
from gradewire_models.repository.config import CONFIG_FILE, FIRST_VERSION, read_config


@contextmanager
def workspace(repository: Path, name: str, report: Report) -> Iterator[Path]:
    """A hidden directory in which a model is made, gone at the end; waits for another builder of the same model.

    It lies in the repository, so that `publish_model` is a rename within one file system. What a killed builder left
    is removed first.

    Args:
        repository: Triton model repository; made when it is not there.
        name: Of the model.
        report: Called when it has to wait.

    Raises:
        OSError: The repository cannot be written.
    """
    with exclusive(repository / f".{name}.lock", report):
        prefix = f".{name}.building-"
        for leftover in repository.glob(f"{prefix}*"):
            shutil.rmtree(leftover)
        path = Path(tempfile.mkdtemp(prefix=prefix, dir=repository))
        try:
            yield path
        finally:
            shutil.rmtree(path)


def publish_model(target: Path, repository: Path) -> tuple[Fitted, ...]:
    """Publishes a finished model under its name, in one step; what was there is left in the workspace.

    A model of another digest goes into the version folder after the one it replaces, so that a Triton that watches the
    repository serves it as a new version and lets requests under way finish on the old one. What users fitted for a
    model of the same digest goes with it.

    Args:
        target: The model's directory in the workspace, its graph in version folder 1.
        repository: Where it goes.

    Returns:
        What users had fitted that holds no more, as it was fitted on a model of another digest.

    Raises:
        OSError: The disk is full or cannot be written; the model that was there is still there.
    """
    standing = repository / target.name
    dropped = carry_calibrations(standing, target)
    version = _next_version(standing, _digest(target))
    (target / FIRST_VERSION).rename(target / version)
    publish_directory(target, repository)
    return dropped


def publish_directory(target: Path, repository: Path) -> None:
    """Publishes a finished directory under its name in `repository`, in one step.

    What was there is left in the workspace.

    Raises:
        OSError: The disk is full or cannot be written; what was there is still there.
    """
    standing = repository / target.name
    # Everything is on the disk before the name is, so a power cut cannot show half a model.
    for path in (*target.rglob("*"), target):
        _sync(path)
    if not standing.exists():
        target.rename(standing)
    elif not exchange(target, standing):
        standing.rename(target.parent / "replaced")
        target.rename(standing)
    _sync(repository)


def _next_version(standing: Path, digest: str | None) -> str:
    newest = newest_version(standing)
    if newest is None:
        return FIRST_VERSION
    return str(newest if _digest(standing) == digest else newest + 1)


def _digest(directory: Path) -> str | None:
    try:
        return read_config(directory / CONFIG_FILE)[1].get("digest")
    except (OSError, ValueError):
        return None


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
