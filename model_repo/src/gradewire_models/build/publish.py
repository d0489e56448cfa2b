"""Put a finished model with its description into a repository: everything or nothing."""

import ctypes
import errno
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gradewire_models.build.fingerprint import FingerprintedGraph
from gradewire_models.build.fitted import Fitted, carry_calibrations
from gradewire_models.build.progress import Report, waiting
from gradewire_models.catalog.entries import EncoderMetadata
from gradewire_models.errors import BuildError
from gradewire_models.locks import exclusive
from gradewire_models.repository.built import newest_version
from gradewire_models.repository.config import (
    CONFIG_FILE,
    FIRST_VERSION,
    ONNX_FILE,
    TOKENIZER_FILE,
    ModelFiles,
    make_config,
    own_parameters,
    read_config,
    write_config,
)
from gradewire_models.repository.digest import record_file
from gradewire_models.repository.serving import Serving, write_warmup


def write_model(
    target: Path, metadata: EncoderMetadata, graph: FingerprintedGraph, serving: Serving | None = None
) -> str:
    """Writes graph, warm-up data and config.pbtxt beside the tokenizer.json that is there.

    Args:
        target: The model's directory.
        metadata: What the encoder is.
        graph: Goes into version folder 1.
        serving: How Triton is to run it; None for the CPU and the usual number of copies.

    Returns:
        The model's digest, 64 hex characters.

    Raises:
        OSError: A file cannot be read or written.
    """
    path = target / ONNX_FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(graph.content)
    write_warmup(target, metadata.max_tokens)
    files = ModelFiles(record_file(path), record_file(target / TOKENIZER_FILE), graph.fingerprint)
    config = make_config(metadata, files, serving or Serving())
    write_config(target / CONFIG_FILE, config)
    return own_parameters(config)["digest"]


def write_tokenizer(source: Path, target: Path, max_tokens: int) -> None:
    """Copies a tokenizer with padding switched off and truncation at `max_tokens`.

    The published files pad everything to 128 tokens, which would cost short texts most of their speed.

    Raises:
        BuildError: `source` is not a tokenizer file.
        OSError: `target` cannot be written.
    """
    try:
        tokenizer = json.loads(source.read_text(encoding="utf-8"))
        tokenizer["padding"] = None
        tokenizer["truncation"] = {
            "direction": "Right",
            "max_length": max_tokens,
            "strategy": "LongestFirst",
            "stride": 0,
        }
    except (UnicodeDecodeError, json.JSONDecodeError, TypeError) as error:
        raise BuildError(f"{source} is not a tokenizer file: {error}") from error
    target.write_text(json.dumps(tokenizer, ensure_ascii=False, separators=(",", ":")), encoding="utf-8")


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
    with exclusive(repository / f".{name}.lock", waiting(report)):
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


_AT_FDCWD = -100  # relative paths start at the working directory
_RENAME_EXCHANGE = 2
_NOT_HERE = {errno.ENOSYS, errno.EINVAL}


def exchange(one: Path, other: Path) -> bool:
    """Lets two directories of one file system change places: nobody ever finds either name missing (renameat2).

    Returns:
        False where system or file system cannot do it; nothing has changed then.

    Raises:
        OSError: One of them is not there, or may not be renamed.
    """
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except AttributeError:  # neither Linux with a glibc of 2018 or later, nor musl of 2024
        return False
    if rename(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE) == 0:
        return True
    code = ctypes.get_errno()
    if code in _NOT_HERE:
        return False
    raise OSError(code, os.strerror(code), str(one), None, str(other))
