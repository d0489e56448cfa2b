"""Writes a model's directory from its parts."""

from pathlib import Path

from gradewire_models.build.graph.fingerprint import FingerprintedGraph
from gradewire_models.catalog.metadata import EncoderMetadata
from gradewire_models.repository.config import (
    CONFIG_FILE,
    ONNX_FILE,
    TOKENIZER_FILE,
    ModelFiles,
    make_config,
    own_parameters,
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
