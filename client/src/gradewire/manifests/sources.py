"""What a run is made from: digests of files, versions, and the models and prompts that its lines name."""

import hashlib
import importlib.metadata
import platform
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from gradewire.manifests.manifest import InputDigest, Versions
from gradewire_proto.v1 import scoring_pb2

_PROMPT: Final = "prompt"
_REFERENCE_SET: Final = "reference_set"


def manifest_path(output: Path) -> Path:
    """Where the manifest of an output stands: OUTPUT.manifest.json beside it, or manifest.json in a folder of parts."""
    if output.is_dir():
        return output / "manifest.json"
    return output.with_name(f"{output.name}.manifest.json")


def file_digest(path: str | Path) -> InputDigest:
    """Size and SHA-256 of a file; what is no regular file on this machine is only named, for it may be read once.

    Raises:
        OSError: It is there and cannot be read.
    """
    file = Path(path)
    if not file.exists() or not stat.S_ISREG(file.stat().st_mode):
        return InputDigest(path=str(path))
    with file.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256")
        return InputDigest(path=str(path), bytes=stream.tell(), sha256=digest.hexdigest())


def versions(server: str = "") -> Versions:
    """Versions of this client, of a server that it has asked, and of the protocol between them."""
    return Versions(
        gradewire=importlib.metadata.version("gradewire"),
        server=server,
        protocol=scoring_pb2.DESCRIPTOR.package,
        python=platform.python_version(),
    )


def pinned_names(lines: Iterable[str]) -> tuple[list[str], list[str]]:
    """Models and prompts that metric lines name with a digest, as NAME@DIGEST, each once and in their order."""
    models: dict[str, None] = {}
    prompts: dict[str, None] = {}
    for line in lines:
        for pair in line.partition("?")[2].split("&"):
            name, _, value = pair.partition("=")
            if "@" in value and name != _REFERENCE_SET:
                (prompts if name == _PROMPT else models)[unquote(value)] = None
    return list(models), list(prompts)
