"""Writes a model's directory from its parts."""

from pathlib import Path

from gradewire_models.build.seal import SealedGraph
from gradewire_models.config import (
    CONFIG_FILE,
    CONFIG_VERSION,
    ONNX_FILE,
    TOKENIZER_FILE,
    FileFacts,
    read_config,
    write_config,
)
from gradewire_models.digest import file_sha256
from gradewire_models.facts import EncoderFacts
from gradewire_models.serving import Serving, write_warmup


def write_model(target: Path, facts: EncoderFacts, graph: SealedGraph, serving: Serving | None = None) -> str:
    """Writes graph, warm-up data and config.pbtxt beside the tokenizer.json that is there.

    Args:
        target: The model's directory.
        facts: What the encoder is.
        graph: Goes into version folder 1.
        serving: How Triton is to run it; None for the CPU and the usual number of copies.

    Returns:
        The model's digest, 64 hex characters.

    Raises:
        OSError: A file cannot be read or written.
    """
    path = target / ONNX_FILE
    path.parent.mkdir(parents=True)
    path.write_bytes(graph.content)
    write_warmup(target)
    tokenizer = target / TOKENIZER_FILE
    files = FileFacts(
        onnx_sha256=file_sha256(path),
        onnx_bytes=path.stat().st_size,
        tokenizer_sha256=file_sha256(tokenizer),
        tokenizer_bytes=tokenizer.stat().st_size,
        fingerprint=graph.fingerprint,
    )
    return write_config(target / CONFIG_FILE, facts, files, serving or Serving())


def is_described_well(directory: Path) -> bool:
    """Whether the config.pbtxt of a built model says all that one written today would say."""
    return read_config(directory / CONFIG_FILE)[1].get("config_version") == CONFIG_VERSION


def describe_again(directory: Path, facts: EncoderFacts, serving: Serving) -> None:
    """Writes the config.pbtxt of a built model anew, with another `serving`; its files stay. Hand-made changes go.

    Raises:
        OSError: The file cannot be written.
    """
    _, said = read_config(directory / CONFIG_FILE)
    files = FileFacts(
        onnx_sha256=said["onnx_sha256"],
        onnx_bytes=int(said["onnx_bytes"]),
        tokenizer_sha256=said["tokenizer_sha256"],
        tokenizer_bytes=int(said["tokenizer_bytes"]),
        fingerprint=int(said["fingerprint"]),
    )
    write_warmup(directory)
    # Readers see the old file or the new one, whole.
    written = directory / f".{CONFIG_FILE}.new"
    write_config(written, facts, files, serving)
    written.replace(directory / CONFIG_FILE)
