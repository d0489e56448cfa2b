"""Publish a finished model, either completely or not at all."""

import ctypes
import errno
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from gradewire_models.build.fitted import Fitted, carry_calibrations
from gradewire_models.build.progress import Report, waiting
from gradewire_models.catalog.entries import EncoderMetadata
from gradewire_models.errors import BuildError, DigestMismatchError
from gradewire_models.locks import exclusive
from gradewire_models.repository.built import newest_version
from gradewire_models.repository.config import (
    CONFIG_FILE,
    FINGERPRINT_OUTPUT,
    FIRST_VERSION,
    INPUT_IDS,
    ONNX_FILE,
    TOKENIZER_FILE,
    ModelFiles,
    make_config,
    own_parameters,
    read_config,
    write_config,
)
from gradewire_models.repository.digest import FileRecord, record_file
from gradewire_models.repository.serving import Serving, write_warmup

WEIGHTS_SHA256 = "weights_sha256"
"""Property of a graph whose weights are in a separate file: the file's SHA-256, 64 hex characters."""

_LEAST_OPSET = 15  # the first opset whose operator Shape has a start and an end

_AT_FDCWD = -100  # relative paths start at the working directory
_RENAME_EXCHANGE = 2
_NOT_HERE = {errno.ENOSYS, errno.EINVAL}


@dataclass(frozen=True, slots=True)
class FingerprintedGraph:
    """An ONNX file with the output ``model_fingerprint``. The output's value is `fingerprint`, which is never 0."""

    content: bytes
    fingerprint: int


def add_fingerprint(model: onnx.ModelProto) -> FingerprintedGraph:
    """Add the output ``model_fingerprint``, int64 [batch, 1], to `model` and serialise it.

    A client that also requests this output can detect a swapped repository. The fingerprint is the first 8 bytes of the
    original model's SHA-256. If weights are in a separate file, the model's property `WEIGHTS_SHA256` must have the
    file's SHA-256, so that the fingerprint covers them.

    Raises:
        ValueError: The model already has a fingerprint, stores weights in a separate file without naming its SHA-256,
            has no input ``input_ids``, or has an opset below 15.
    """
    graph = model.graph
    taken = {name for node in graph.node for name in node.output}
    if FINGERPRINT_OUTPUT in taken:
        raise ValueError(f"the graph already has an output {FINGERPRINT_OUTPUT}")
    names_weights = any(each.key == WEIGHTS_SHA256 for each in model.metadata_props)
    if not names_weights and any(tensor.data_location == TensorProto.EXTERNAL for tensor in graph.initializer):
        raise ValueError("the graph stores weights in separate files, which its fingerprint would not cover")
    if INPUT_IDS not in {tensor.name for tensor in graph.input}:
        raise ValueError(f"the graph has no input {INPUT_IDS}")
    opsets = [opset.version for opset in model.opset_import if opset.domain in {"", "ai.onnx"}]
    if max(opsets, default=0) < _LEAST_OPSET:
        raise ValueError(f"the graph has an opset below {_LEAST_OPSET}")
    fingerprint = _fingerprint(model.SerializeToString(deterministic=True))

    batch, one, shape = (f"{FINGERPRINT_OUTPUT}.{part}" for part in ("batch", "one", "shape"))
    value = numpy_helper.from_array(np.array([fingerprint], np.int64))
    graph.initializer.append(numpy_helper.from_array(np.array([1], np.int64), one))
    graph.node.extend(
        [
            helper.make_node("Shape", [INPUT_IDS], [batch], name=batch, start=0, end=1),
            helper.make_node("Concat", [batch, one], [shape], name=shape, axis=0),
            helper.make_node("ConstantOfShape", [shape], [FINGERPRINT_OUTPUT], name=FINGERPRINT_OUTPUT, value=value),
        ]
    )
    graph.output.append(helper.make_tensor_value_info(FINGERPRINT_OUTPUT, TensorProto.INT64, ["batch", 1]))
    return FingerprintedGraph(model.SerializeToString(deterministic=True), fingerprint)


def read_fingerprint(path: Path) -> int | None:
    """Return the fingerprint that `add_fingerprint` stored in a graph, or None if the graph has no fingerprint.

    Raises:
        OSError: The file is not readable.
        google.protobuf.message.DecodeError: The file is not an ONNX graph.
    """
    for node in onnx.load(path, load_external_data=False).graph.node:
        if list(node.output) == [FINGERPRINT_OUTPUT] and node.op_type == "ConstantOfShape":
            return int(numpy_helper.to_array(node.attribute[0].t)[0])
    return None


def _fingerprint(content: bytes) -> int:
    # 0 is reserved because an unwritten buffer contains 0.
    return int.from_bytes(hashlib.sha256(content).digest()[:8], "big", signed=True) or 1


def write_model(
    target: Path,
    metadata: EncoderMetadata,
    graph: FingerprintedGraph,
    serving: Serving | None = None,
    *,
    weights: FileRecord | None = None,
) -> str:
    """Write the graph, warm-up data and config.pbtxt next to tokenizer.json in `target`; return the model's digest.

    `weights` is the record of the file beside the graph with the weights, which must exist; None if the graph contains
    them.

    Raises:
        OSError: A file is not readable or writable.
    """
    path = target / ONNX_FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(graph.content)
    write_warmup(target, metadata.max_tokens)
    files = ModelFiles(record_file(path), record_file(target / TOKENIZER_FILE), graph.fingerprint, weights)
    config = make_config(metadata, files, serving or Serving())
    write_config(target / CONFIG_FILE, config)
    return own_parameters(config)["digest"]


def write_tokenizer(source: Path, target: Path, max_tokens: int) -> None:
    """Copy a tokenizer with truncation at `max_tokens` and without padding, because padding slows down short texts.

    Raises:
        BuildError: `source` is not a tokenizer file.
        OSError: `target` is not writable.
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
    """Yield a hidden directory to make a model in, and finally delete it. Wait for other builds of the same model.

    The directory is in the repository, so that `publish_model` can rename within one file system. Leftovers of killed
    builds are removed first.

    Raises:
        OSError: The repository is not writable.
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


@contextmanager
def naming_the_disk(name: str, repository: Path, needed_bytes: int) -> Iterator[None]:
    """Turn an OSError during a build into an error about the disk space that the build needs.

    Raises:
        BuildError: A file is not readable or writable.
    """
    try:
        yield
    except OSError as error:
        raise BuildError(
            f"cannot build {name} in {repository}: {error}. The build needs about {needed_bytes / 1e9:.1f} GB of disk. "
            "Nothing was changed"
        ) from error


def require_digest(name: str, found: str, expected: str) -> None:
    """Compare the digest `found` with `expected`; if `expected` is "", accept any digest.

    Raises:
        DigestMismatchError: The digests differ.
    """
    if expected and found != expected:
        raise DigestMismatchError(
            f"{name} has digest {found}, but the catalog expects {expected}. The graph writer and the catalog "
            "are from different releases"
        )


def publish_model(target: Path, repository: Path) -> tuple[Fitted, ...]:
    """Publish a finished model under its name in one step. A replaced model moves to the workspace.

    If the replaced model has a different digest, the new model becomes the next version in Triton. Users'
    calibrations are kept if they were fitted on a model with the new digest; all others are dropped and returned.

    Raises:
        OSError: The disk is full or not writable. The old model stays in place.
    """
    standing = repository / target.name
    dropped = carry_calibrations(standing, target)
    version = _next_version(standing, _digest(target))
    (target / FIRST_VERSION).rename(target / version)
    publish_directory(target, repository)
    return dropped


def publish_directory(target: Path, repository: Path) -> None:
    """Publish a finished directory in `repository` in one step; a replaced directory moves to the workspace.

    Raises:
        OSError: The disk is full or not writable. The old directory stays in place.
    """
    standing = repository / target.name
    # Sync the content before the rename, so that a power cut cannot leave half a model.
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


def exchange(one: Path, other: Path) -> bool:
    """Swap two directories on one file system atomically (renameat2), so that both names always exist.

    Return False, and change nothing, if the system or the file system does not support swapping.

    Raises:
        OSError: A directory is missing or cannot be renamed.
    """
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except AttributeError:  # needs Linux with a glibc from 2018 or a musl from 2024
        return False
    if rename(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE) == 0:
        return True
    code = ctypes.get_errno()
    if code in _NOT_HERE:
        return False
    raise OSError(code, os.strerror(code), str(one), None, str(other))
