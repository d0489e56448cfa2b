"""Compute a model's digest, a SHA-256 of everything that determines a text's vector."""

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

_FORMAT = "gradewire-model/1"
_NEWER = ("suffix", "weights_sha256")


@dataclass(frozen=True, slots=True)
class DigestParts:
    """The values that a model's digest covers; two models with equal values return equal vectors.

    Attributes:
        suffix: Text after every input, or "".
        weights_sha256: SHA-256 of the file with the weights, or "" if the ONNX file contains them.
    """

    onnx_sha256: str
    tokenizer_sha256: str
    max_tokens: int
    pooling: str
    prefix: str
    numeric_class: str
    suffix: str = ""
    weights_sha256: str = ""

    def digest(self) -> str:
        """Return the SHA-256 of all values, 64 hex characters."""
        # JSON separates the values, so different sequences of values have different bytes.
        # Most models have neither a suffix nor a file of weights, and keep the digest of releases without them.
        named = {name: value for name in _NEWER if (value := getattr(self, name))}
        older = [value for name, value in asdict(self).items() if name not in _NEWER]
        parts = json.dumps([_FORMAT, *older, *([named] if named else [])], ensure_ascii=True)
        return hashlib.sha256(parts.encode("ascii")).hexdigest()


@dataclass(frozen=True, slots=True)
class FileRecord:
    """A file's size in bytes and its SHA-256, 64 hex characters."""

    bytes: int
    sha256: str


def record_file(path: Path) -> FileRecord:
    """Return the size and SHA-256 of a file.

    Raises:
        OSError: The file cannot be read.
    """
    return FileRecord(path.stat().st_size, file_sha256(path))


def record_fault(path: Path, record: FileRecord) -> str:
    """Return a message if a file's SHA-256 differs from the record's, otherwise ""."""
    try:
        found = file_sha256(path)
    except OSError as error:
        return f"cannot read {path}: {error}"
    return "" if found == record.sha256 else f"{path} has SHA-256 {found}, but its description says {record.sha256}"


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file, 64 hex characters.

    Raises:
        OSError: The file cannot be read.
    """
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
